import type { FastifyInstance, FastifyReply } from 'fastify'
import type { App } from '../app.ts'

interface Route {
  Querystring: { phone_number_id?: string }
}

interface Kept {
  id?: string
  at: number
  phoneNumberId: string
  body: string
}

/** What the platform accepted, oldest first: sends, and apart from them read receipts. */
export function controlSent({ history }: App, http: FastifyInstance) {
  http.get<Route>('/control/sent', (request, reply) => list(reply, history.sends(), request.query.phone_number_id))
  http.get<Route>('/control/receipts', (request, reply) =>
    list(reply, history.receipts(), request.query.phone_number_id),
  )
}

/** Bodies are the JSON that came, so they go out as they are. */
function list(reply: FastifyReply, records: Kept[], phoneNumberId: string | undefined) {
  const shown = records.filter((record) => phoneNumberId === undefined || record.phoneNumberId === phoneNumberId)
  const items = shown.map(({ id, at, body }) => {
    const head = JSON.stringify({ id, at: new Date(at).toISOString() })
    return `${head.slice(0, -1)},"body":${body}}`
  })
  return reply.type('application/json').send(`{"data":[${items.join()}]}`)
}
