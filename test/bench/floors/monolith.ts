import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import fastify, { type FastifyInstance } from 'fastify'
import postgres, { type Sql } from 'postgres'
import { z } from 'zod'
import { answerParent } from '../child.ts'

// What one would write without this project: fastify, zod, and one durable INSERT a request. No keys, limits, guards,
// events or dispatch.

const Send = z.object({
  messaging_product: z.literal('chat'),
  to: z.string().regex(/^\+\d{6,15}$/),
  type: z.literal('text'),
  text: z.object({ body: z.string().min(1).max(4096) }),
})

const text = { type: 'string' } as const
const answer = {
  type: 'object',
  properties: {
    data: {
      type: 'object',
      properties: { id: text, object: text, to: text, type: text, status: text, created_at: text },
    },
    request_id: text,
  },
} as const

interface Settings {
  postgresUrl: string
  appSecret: string
}

async function start({ postgresUrl, appSecret }: Settings) {
  const sql = postgres(postgresUrl, { max: 10, onnotice: () => {} })
  await createTables(sql)
  const http = fastify({ genReqId: () => randomUUID() })
  serveSends(http, sql)
  await http.register(async (scope) => serveCallbacks(scope, sql, appSecret))
  return { url: await http.listen({ host: '127.0.0.1', port: 0 }) }
}

async function createTables(sql: Sql) {
  await sql`
    create table if not exists messages (
      id text primary key, phone_number_id text not null, recipient text not null, type text not null,
      body jsonb not null, status text not null, created_at timestamptz not null
    )
  `
  await sql`
    create table if not exists callbacks (
      id bigint generated always as identity primary key, received_at timestamptz not null default now(), body bytea not null
    )
  `
}

function serveSends(http: FastifyInstance, sql: Sql) {
  http.post<{ Params: { number: string } }>(
    '/v1/:number/messages',
    { schema: { response: { 200: answer } } },
    async (request, reply) => {
      const body = Send.safeParse(request.body)
      if (!body.success) return reply.code(400).send(body.error)
      const { to, type, text } = body.data
      const id = `msg_${randomUUID()}`
      const createdAt = new Date()
      await sql`
        insert into messages (id, phone_number_id, recipient, type, body, status, created_at)
        values (${id}, ${request.params.number}, ${to}, ${type}, ${sql.json(text)}, 'queued', ${createdAt})
      `
      const data = { id, object: 'message', to, type, status: 'queued', created_at: createdAt.toISOString() }
      return { data, request_id: request.id }
    },
  )
}

function serveCallbacks(http: FastifyInstance, sql: Sql, appSecret: string) {
  http.removeAllContentTypeParsers()
  http.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))
  http.post<{ Body: Buffer }>('/upstream/callbacks', async ({ body, headers }, reply) => {
    if (!isSigned(body, String(headers['x-hub-signature-256']), appSecret)) return reply.code(401).send()
    await sql`insert into callbacks (body) values (${body})`
    return reply.send()
  })
}

function isSigned(body: Buffer, signature: string, appSecret: string) {
  const expected = Buffer.from(`sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`)
  const given = Buffer.from(signature)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const commands = { start }
export type Monolith = typeof commands
answerParent(commands)
