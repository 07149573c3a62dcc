import { ask, call } from '@app/shared/bus/ask.ts'
import { openUpload, uploadMedia } from '@app/shared/contracts/media.ts'
import { maxMediaBytes } from '@app/shared/files/media-kinds.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { receiveFile } from '@app/shared/files/receive-file.ts'
import { authenticate } from '../access/authenticate.ts'
import { isFresh } from '../access/look-up.ts'
import type { App } from '../app.ts'
import { answer } from '../exchange/answer.ts'
import type { Admitted, Work } from '../exchange/exchange.ts'
import { headerOf, moreOf } from '../exchange/pass-on.ts'
import { refuseEncoded } from '../exchange/read-body.ts'
import { idempotencyKeyOf } from '../idempotency.ts'
import { openForm } from './open-form.ts'

/** What a form has beside its file. */
const formBytes = 64 * 1024
/** For the questions about the file, however long the beginning of its form or its bytes took. */
const registerMs = 15_000

/** POST …/media: the file goes from the socket to the store, and what it is to messaging, which owns it. */
export const takeUpload: Work = async (app, exchange) => {
  const { request, identity } = exchange
  const key = idempotencyKeyOf(request.headers['idempotency-key'])
  const params = request.params as Record<string, string>
  await app.accounts.require(exchange, params['phone_number_id'] ?? '')
  refuseEncoded(request.raw)
  if (Number(request.headers['content-length']) > maxMediaBytes + formBytes) throw tooLarge()
  const { organizationId } = identity.value
  const upload = () => app.uploads.during(organizationId, () => takeFile(app, exchange, params, key))
  await (key === undefined ? upload() : app.runOnce({ organizationId, key, url: request.url }, upload))
}

async function takeFile(app: App, exchange: Admitted, params: Record<string, string>, key: string | undefined) {
  const form = await openForm(exchange.request.raw)
  try {
    exchange.deadline = performance.now() + registerMs
    const { file_key: fileKey } = await call(app, openUpload, {}, callerOf(exchange))
    const { contentType, orType, typeParam, filename } = form
    const told = { contentType, orType, param: 'file', typeParam, tooLarge }
    const file = await receiveFile(app.store, fileKey, form.bytes, told)
    await form.end()
    const { mimeType, size, sha256 } = file
    const body = Buffer.from(JSON.stringify({ file_key: fileKey, mime_type: mimeType, size, sha256, filename }))
    exchange.deadline = performance.now() + registerMs
    // What is known of the key may have grown too old while the bytes came.
    if (!isFresh(exchange.identity)) exchange.identity = await authenticate(app, exchange)
    const reply = await app.inFlight.during(exchange.identity.value.organizationId, () =>
      ask(app, uploadMedia, headerOf(exchange, params, key), body),
    )
    answer(app, exchange, reply.status ?? 201, reply.body, moreOf(reply))
  } finally {
    form.close()
  }
}

function callerOf({ identity, requestId, deadline, traceparent }: Admitted) {
  const { organizationId, keyId } = identity.value
  return { organizationId, keyId, requestId, deadline, traceparent }
}

const tooLarge = () => new Problem('payload_too_large', { message: `A file has at most ${maxMediaBytes} bytes.` })
