import { batched } from '@app/shared/work/batched.ts'
import { connect, headers, type JetStreamClient } from 'nats'
import postgres, { type Sql } from 'postgres'
import { Pool } from 'undici'
import { answerParent } from '../child.ts'
import { createIntake, type Taken } from './intake.ts'

// The least that keeps the promise of a send: a message is durable before the answer, its attempt before the call to the
// platform, calls of a conversation go one after the other, its outcome and its event are one transaction, and the event is on
// the stream before it is forgotten. One process that knows one tenant: no keys, limits, guards, contacts, conversations,
// lists, paces, retries, services or subscribers, and nothing that goes on after a crash, which costs a send nothing.

interface Settings {
  postgresUrl: string
  natsUrl: string
  /** The platform. */
  simulatorUrl: string
  /** Access tokens by number. */
  tokens: Record<string, string>
}

interface Sent extends Taken {
  upstreamId: string
}

/** As the project's dispatcher. */
const callsAtATime = 320
let open = 0

async function start({ postgresUrl, natsUrl, simulatorUrl, tokens }: Settings) {
  const sql = postgres(postgresUrl, { max: 10, onnotice: () => {} })
  await createTables(sql)
  const stream = await openStream(natsUrl)
  const platform = new Pool(simulatorUrl, { connections: callsAtATime })
  const accept = batched((messages: Taken[]) => insert(sql, messages), { inFlight: 1, rows: 128 })
  const settle = batched((sent: Sent[]) => record(sql, stream, sent), { inFlight: 1, rows: 256 })
  const forget = batched((ids: string[]) => remove(sql, ids), { inFlight: 1, rows: 256 })
  /** Conversations in which one is under way, with the last one. */
  const lanes = new Map<string, Promise<void>>()

  async function deliver(message: Taken, before: Promise<void> | undefined) {
    await before
    const upstreamId = await call(platform, tokens[message.number] ?? '', message)
    await settle({ ...message, upstreamId })
    await forget(message.id)
  }

  const http = createIntake(async (message) => {
    await accept(message)
    open++
    const lane = `${message.number} ${message.recipient}`
    const ending = deliver(message, lanes.get(lane)).finally(() => {
      open--
      if (lanes.get(lane) === ending) lanes.delete(lane)
    })
    lanes.set(lane, ending)
  })
  return { url: await http.listen({ host: '127.0.0.1', port: 0 }) }
}

async function createTables(sql: Sql) {
  await sql`
    create table sends (
      number text not null, id text not null, recipient text not null, type text not null, body jsonb not null,
      status text not null, upstream_id text, begun_at timestamptz not null, ended_at timestamptz, created_at timestamptz not null,
      primary key (number, id)
    )
  `
  await sql`create index on sends (number, recipient) where ended_at is null`
  await sql`create table sent_events (id text primary key, event text not null)`
}

async function openStream(natsUrl: string) {
  const nc = await connect({ servers: natsUrl, noAsyncTraces: true })
  const manager = await nc.jetstreamManager()
  await manager.streams.add({ name: 'SENT', subjects: ['sent'] })
  return nc.jetstream()
}

/** Messages with their attempts, which begin when this is committed. */
async function insert(sql: Sql, messages: Taken[]) {
  await sql`
    insert into sends (number, id, recipient, type, body, status, begun_at, created_at)
    select number, id, recipient, 'text', text, 'pending', now(), "createdAt"
    from json_to_recordset(${JSON.stringify(messages)}::text::json)
      as u(number text, id text, recipient text, text jsonb, "createdAt" timestamptz)
  `
  return messages
}

async function call(platform: Pool, token: string, { id, number, recipient, text }: Taken) {
  const { statusCode, body } = await platform.request({
    method: 'POST',
    path: `/v23.0/${number}/messages`,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      to: recipient,
      type: 'text',
      biz_opaque_callback_data: id,
      text,
    }),
  })
  const answer = await body.text()
  if (statusCode !== 200) throw new Error(`the platform answers ${statusCode} ${answer}`)
  return (JSON.parse(answer) as { messages: [{ id: string }] }).messages[0].id
}

async function record(sql: Sql, stream: JetStreamClient, sent: Sent[]) {
  const rows = sent.map((one) => ({ ...one, event: JSON.stringify({ type: 'message.sent', data: one }) }))
  await sql`
    with u as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json)
        as u(number text, id text, "upstreamId" text, event text)
    ), ended as (
      update sends s set status = 'sent', upstream_id = u."upstreamId", ended_at = now()
      from u where s.number = u.number and s.id = u.id
    )
    insert into sent_events (id, event) select id, event from u
  `
  return Promise.all(rows.map(({ id, event }) => publish(stream, id, event)))
}

function publish(stream: JetStreamClient, id: string, event: string) {
  const carrier = headers()
  carrier.set('Nats-Msg-Id', id)
  return stream.publish('sent', event, { headers: carrier })
}

async function remove(sql: Sql, ids: string[]) {
  await sql`delete from sent_events where id = any(${ids})`
  return ids
}

/** `open`: sends that were answered and are not done. */
const commands = { start, open: () => open }
export type Least = typeof commands
answerParent(commands)
