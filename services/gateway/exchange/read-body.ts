import type { IncomingMessage } from 'node:http'
import { Problem } from '@app/shared/api/problem.ts'
import { gather } from '@app/shared/values/gather.ts'
import type { InFlight } from '../limits/in-flight.ts'
import { inviteBody } from './invite-body.ts'

/** How long a client may take to send a body; also one that was refused, while its body is thrown away. */
export const bodyTimeoutMs = 30_000

/**
 * The bytes of a request's body, counted in `inFlight` as their owner's while they come in and, once they are here, until the
 * caller gives them back. Throws `payload_too_large`; what comes after that is thrown away.
 */
export function readBody(raw: IncomingMessage, limitBytes: number, { hold }: InFlight, owner: string): Promise<Buffer> {
  if (Number(raw.headers['content-length']) > limitBytes) return Promise.reject(tooLarge(limitBytes))
  // Its client went away while it was looked up who it is: no `close` comes any more.
  if (raw.destroyed) return Promise.reject(endedEarly())
  return new Promise((resolve, reject) => {
    const gathered = gather()
    const timer = setTimeout(() => fail(new Problem('request_timeout')), bodyTimeoutMs)

    function fail(problem: unknown) {
      clearTimeout(timer)
      raw.off('data', onData).off('end', onEnd).off('close', onClose)
      hold(owner, -gathered.length)
      reject(problem)
    }
    function onData(chunk: Buffer) {
      if (gathered.length + chunk.length > limitBytes) return fail(tooLarge(limitBytes))
      try {
        hold(owner, chunk.length)
      } catch (problem) {
        return fail(problem)
      }
      gathered.add(chunk)
    }
    function onEnd() {
      clearTimeout(timer)
      raw.off('close', onClose)
      resolve(gathered.bytes())
    }
    // Comes without `end` when the client went away or a time limit ended its connection.
    function onClose() {
      fail(endedEarly())
    }
    inviteBody(raw)
    raw.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}

/** A proxy that was not told the length of no body passes it on in chunks. With a byte in it, its type is missing. */
export function readNothing(raw: IncomingMessage, inFlight: InFlight, owner: string): Promise<Buffer> {
  return readBody(raw, 0, inFlight, owner).catch((problem: unknown) => {
    const isSomething = problem instanceof Problem && problem.failure === 'payload_too_large'
    throw isSomething ? new Problem('unsupported_media_type') : problem
  })
}

/** A compressed body would be called broken. */
export function refuseEncoded({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new Problem('unsupported_media_type', { message: 'Send the body without a Content-Encoding.' })
}

const endedEarly = () => new Problem('invalid_field_value', { message: 'The request body ended early.' })

const tooLarge = (limitBytes: number) =>
  new Problem('payload_too_large', { message: `The request body is larger than ${limitBytes} bytes.` })

/** Whether a request brings a body at all, be it of unknown length. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
