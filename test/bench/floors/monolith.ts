import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import postgres, { type Sql } from 'postgres'
import { answerParent } from '../child.ts'
import { createIntake } from './intake.ts'

// What one would write without this project: fastify, zod, and one durable INSERT a request. No keys, limits, guards,
// events or dispatch.

interface Settings {
  postgresUrl: string
  appSecret: string
}

async function start({ postgresUrl, appSecret }: Settings) {
  const sql = postgres(postgresUrl, { max: 10, onnotice: () => {} })
  await createTables(sql)
  const http = createIntake(
    ({ id, number, recipient, text, createdAt }) => sql`
      insert into messages (id, phone_number_id, recipient, type, body, status, created_at)
      values (${id}, ${number}, ${recipient}, 'text', ${sql.json(text)}, 'queued', ${createdAt})
    `,
  )
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
