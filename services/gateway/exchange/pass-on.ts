import { ask, type Reply } from '@app/shared/bus/ask.ts'
import type { CallHeader } from '@app/shared/bus/call-header.ts'
import type { Http, Rpc } from '@app/shared/api/contract.ts'
import { type FailureName, Problem } from '@app/shared/api/problem.ts'
import { authenticate } from '../access/authenticate.ts'
import { isFresh } from '../access/look-up.ts'
import type { App } from '../app.ts'
import { idempotencyKeyOf } from '../idempotency.ts'
import { answer } from './answer.ts'
import { hasTag, weakTagOf } from './etag.ts'
import { type Admitted, deadlineMs, outsideDeadlineMs, type Work } from './exchange.ts'
import { hasBody, readBody, readNothing, refuseEncoded } from './read-body.ts'

const bodyLimitBytes = 256 * 1024
/** Smaller answers are not counted while they leave: there are many, and connections hold little of them. */
const heldBytes = 16 * 1024
const noBody = new Uint8Array()

/** What an endpoint does: pass the request on to the service that owns it, and its answer back, both as bytes. */
export function passOn(contract: Rpc, http: Http): Work {
  const { method, path, feature, etag, asksOutside, status: successStatus = 200 } = http
  const waitMs = asksOutside ? outsideDeadlineMs : deadlineMs
  const hasAccount = path.startsWith('/{phone_number_id}/')
  const takesBody = contract.body.type !== 'undefined'
  const takesKey = method === 'POST'

  return async (app, exchange) => {
    const { request } = exchange
    const { organizationId } = exchange.identity.value
    const key = takesKey ? idempotencyKeyOf(request.headers['idempotency-key']) : undefined
    let refusal = refusalOf(exchange, feature, key)
    const params = request.params as Record<string, string>
    if (hasAccount) await app.accounts.require(exchange, params['phone_number_id'] ?? '')
    const body = takesBody ? await jsonBody(app, exchange) : noBody
    try {
      // What is known of the key may have grown too old meanwhile: while the body came, or in a frozen process.
      if (!isFresh(exchange.identity)) {
        exchange.identity = await authenticate(app, exchange)
        refusal = refusalOf(exchange, feature, key)
      }
      exchange.deadline = performance.now() + waitMs
      const header = headerOf(exchange, params, key)
      if (refusal !== undefined) header.refusal = refusal
      const reply = await app.inFlight.during(organizationId, () =>
        key === undefined
          ? ask(app, contract, header, body)
          : app.runOnce({ organizationId, key, url: request.url, body }, () => ask(app, contract, header, body)),
      )
      // What was done is answered, whatever lies here.
      if (method === 'GET') holdUntilRead(app, exchange, reply.body.length)
      if (etag && reply.status === null) return answerTagged(app, exchange, reply.body)
      answer(app, exchange, reply.status ?? successStatus, reply.body, moreOf(reply))
    } finally {
      app.inFlight.hold(organizationId, -body.length)
    }
  }
}

/** With a key it may be the retry of what was accepted earlier, and the service knows; without one the refusal is thrown. */
function refusalOf(
  { identity }: Admitted,
  feature: string | undefined,
  key: string | undefined,
): FailureName | undefined {
  if (feature === undefined || identity.value.features.includes(feature)) return undefined
  if (key === undefined) throw new Problem('feature_not_entitled')
  return 'feature_not_entitled'
}

/** An answer whose client does not read it lies in this process until the connection ends. */
function holdUntilRead({ inFlight }: App, { request, response, identity }: Admitted, bytes: number) {
  const { socket } = request.raw
  if (bytes < heldBytes || socket.destroyed) return
  const { organizationId } = identity.value
  inFlight.hold(organizationId, bytes)
  // Of answers that wait behind another one on their connection, only that tells when it is gone.
  socket.once('close', release)
  response.once('finish', release)
  function release() {
    socket.off('close', release)
    response.off('finish', release)
    inFlight.hold(organizationId, -bytes)
  }
}

/** A success with its ETag, or that alone for a client that has it. */
function answerTagged(app: App, exchange: Admitted, body: Uint8Array) {
  const tag = weakTagOf(body, exchange.requestId)
  const isKnown = hasTag(exchange.request.headers['if-none-match'], tag)
  answer(app, exchange, isKnown ? 304 : 200, isKnown ? noBody : body, ['ETag', tag])
}

/** What a question of an admitted request carries. */
export function headerOf(
  { request, requestId, deadline, traceparent, identity }: Admitted,
  params: Record<string, string>,
  key: string | undefined,
): CallHeader {
  return {
    organization: identity.value.organizationId,
    key: identity.value.keyId,
    request: requestId,
    remainingMs: Math.floor(deadline - performance.now()),
    trace: traceparent,
    params,
    query: request.query as Record<string, unknown>,
    idempotency: key === undefined ? undefined : { key, target: `${request.method} ${request.url}` },
  }
}

/** The headers that an answer brings with it. */
export function moreOf({ replayed, retryAfterSeconds, location }: Reply): string[] | undefined {
  if (!replayed && retryAfterSeconds === null && location === null) return undefined
  const more: string[] = []
  if (replayed) more.push('Idempotent-Replayed', 'true')
  if (retryAfterSeconds !== null) more.push('Retry-After', String(retryAfterSeconds))
  if (location !== null) more.push('Location', location)
  return more
}

const json = /^application\/json *(;|$)/i

async function jsonBody({ inFlight }: App, { request: { raw }, identity }: Admitted): Promise<Uint8Array> {
  if (!hasBody(raw)) return noBody
  const type = raw.headers['content-type']
  const { organizationId } = identity.value
  if (type === undefined) return readNothing(raw, inFlight, organizationId)
  if (!json.test(type)) throw new Problem('unsupported_media_type')
  refuseEncoded(raw)
  return readBody(raw, bodyLimitBytes, inFlight, organizationId)
}
