import { answer } from './answer.ts'
import type { Work } from './exchange.ts'

/** GET /me: what the key's look-up brought, at most 2 s ago. Asking again would cost a second question for the same row. */
export const answerMe: Work = (app, exchange) => {
  const { me } = exchange.identity.value
  answer(app, exchange, 200, `{"data":${me},"request_id":"${exchange.requestId}"}`)
}
