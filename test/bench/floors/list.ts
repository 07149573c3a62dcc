import fastify from 'fastify'
import postgres from 'postgres'
import { answerParent } from '../child.ts'

interface Settings {
  /** The project's own database: the same rows, the same indexes. */
  postgresUrl: string
  organizationId: string
}

const nullable = { type: ['string', 'null'] } as const
const text = { type: 'string' } as const
const message = {
  type: 'object',
  properties: {
    id: text,
    object: text,
    conversation_id: text,
    to: nullable,
    direction: text,
    type: text,
    content: nullable,
    media_url: nullable,
    status: text,
    created_at: text,
    message_id: text,
  },
} as const

/** A list of messages without keys, limits, cursors or another process: fastify, the same SELECT, a response schema. */
async function start({ postgresUrl, organizationId }: Settings) {
  const sql = postgres(postgresUrl, { max: 10, transform: postgres.camel, onnotice: () => {} })
  const http = fastify()
  http.get<{ Params: { number: string }; Querystring: { limit: string } }>(
    '/v1/:number/messages',
    { schema: { response: { 200: { type: 'object', properties: { data: { type: 'array', items: message } } } } } },
    async ({ params, query }) => {
      const rows = await sql`
        select id, conversation_id, recipient, direction, type, content, status, upstream_id, error, unsupported, played_at, media_id,
          created_at
        from messaging.messages
        where organization_id = ${organizationId} and phone_number_id = ${params.number}
        order by id desc limit ${Number(query.limit)}
      `
      return {
        data: rows.map((row) => ({
          id: row['id'],
          object: 'message',
          conversation_id: row['conversationId'],
          to: row['recipient'],
          direction: row['direction'],
          type: row['type'],
          content: row['content'],
          media_url: null,
          status: row['status'] === 'queued' ? 'pending' : row['status'],
          created_at: row['createdAt'].toISOString(),
          ...(row['upstreamId'] !== null && { message_id: row['upstreamId'] }),
        })),
      }
    },
  )
  return { url: await http.listen({ host: '127.0.0.1', port: 0 }) }
}

const commands = { start }
export type List = typeof commands
answerParent(commands)
