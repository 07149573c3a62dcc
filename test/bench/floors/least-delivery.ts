import { batched } from '@app/shared/work/batched.ts'
import { AckPolicy, connect, headers, type JetStreamClient, type JsMsg, type NatsConnection } from 'nats'
import postgres, { type Sql } from 'postgres'
import { Pool } from 'undici'
import { answerParent } from '../child.ts'
import { inParallel } from '../load/in-parallel.ts'
import { connections, type Delivery, deliveryOf, dispatch } from './delivery.ts'

// The least that keeps the promise of a delivery: an event is on the stream until it and its delivery are durable, a delivery is open
// until its attempt is recorded, and an event that comes again makes none. One process that knows one subscriber: no
// organizations, subscriptions, filters, lists, order, shares, caps, retries or replays, and nothing that goes on after a crash,
// which costs a delivery nothing.

interface Settings {
  receiverUrl: string
  postgresUrl: string
  natsUrl: string
}

interface Attempt {
  eventId: string
  startedAt: string
  durationMs: number
  status: number
}

const [stream, subject, consumer] = ['EVENTS', 'event', 'deliver']
/** As the project's consumers. */
const mostEvents = 256
/** As the project's relay has outstanding. */
const outstanding = 256
let open = 0

async function start({ receiverUrl, postgresUrl, natsUrl }: Settings) {
  const sql = postgres(postgresUrl, { max: 10, onnotice: () => {} })
  await createTables(sql)
  const js = await openStream(await connectTo(natsUrl))
  const settle = batched((attempts: Attempt[]) => record(sql, attempts), { inFlight: 1, rows: 256 })
  const post = createPosts(receiverUrl, settle)
  const messages: JsMsg[] = []
  let taking: Promise<void> | undefined

  async function takeAll() {
    while (messages.length > 0) {
      const some = messages.splice(0, mostEvents)
      const fresh = await insert(sql, some.map(deliveryIn))
      for (const message of some) message.ack()
      open += fresh.length
      for (const delivery of fresh) post(delivery)
    }
  }
  const events = await js.consumers.get(stream, consumer)
  await events.consume({
    max_messages: 2 * mostEvents,
    callback(message) {
      messages.push(message)
      taking ??= new Promise<void>((resolve) => setImmediate(resolve)).then(takeAll).finally(() => {
        taking = undefined
      })
    },
  })
}

const connectTo = (natsUrl: string) => connect({ servers: natsUrl, noAsyncTraces: true })

const deliveryIn = (message: JsMsg): Delivery => ({
  eventId: message.headers?.get('Nats-Msg-Id') ?? '',
  body: message.string(),
})

/** At most so many at a time. */
function createPosts(receiverUrl: string, settle: (attempt: Attempt) => Promise<unknown>) {
  const pool = new Pool(receiverUrl, { connections })
  const waiting: Delivery[] = []
  let running = 0
  async function make(delivery: Delivery) {
    const startedAt = new Date()
    const status = await dispatch(pool, delivery)
    running--
    begin()
    await settle({
      eventId: delivery.eventId,
      startedAt: startedAt.toISOString(),
      durationMs: Date.now() - startedAt.getTime(),
      status,
    })
    open--
  }
  function begin() {
    for (; running < connections && waiting.length > 0; running++) {
      const delivery = waiting.shift()
      if (delivery) void make(delivery)
    }
  }
  return (delivery: Delivery) => {
    waiting.push(delivery)
    begin()
  }
}

async function createTables(sql: Sql) {
  await sql`create table least_events (id text primary key, payload text not null)`
  await sql`create table least_deliveries (id text primary key, event_id text not null, created_at timestamptz not null)`
  await sql`create table least_due (id text primary key, due_at timestamptz not null)`
  await sql`
    create table least_attempts (
      delivery_id text, number int, started_at timestamptz not null, duration_ms int not null, response_status int not null,
      primary key (delivery_id, number)
    )
  `
}

async function openStream(nc: NatsConnection) {
  const manager = await nc.jetstreamManager()
  await manager.streams.add({ name: stream, subjects: [subject] })
  await manager.consumers.add(stream, { durable_name: consumer, ack_policy: AckPolicy.Explicit, max_ack_pending: 4096 })
  return nc.jetstream()
}

/** Events with their deliveries; answers those that were not there. */
async function insert(sql: Sql, deliveries: Delivery[]) {
  const rows = await sql<{ id: string }[]>`
    with u as (
      select * from json_to_recordset(${JSON.stringify(deliveries)}::text::json) as u("eventId" text, body text)
    ), fresh as (
      insert into least_events (id, payload) select "eventId", body from u on conflict do nothing returning id
    ), made as (
      insert into least_deliveries (id, event_id, created_at) select 'wbd_' || id, id, now() from fresh
    ), due as (
      insert into least_due (id, due_at) select 'wbd_' || id, now() from fresh
    )
    select id from fresh
  `
  const fresh = new Set(rows.map(({ id }) => id))
  return deliveries.filter(({ eventId }) => fresh.has(eventId))
}

async function record(sql: Sql, attempts: Attempt[]) {
  await sql`
    with u as (
      select * from json_to_recordset(${JSON.stringify(attempts)}::text::json)
        as u("eventId" text, "startedAt" timestamptz, "durationMs" int, status int)
    ), done as (
      delete from least_due d using u where d.id = 'wbd_' || u."eventId"
    )
    insert into least_attempts select 'wbd_' || "eventId", 1, "startedAt", "durationMs", status from u
  `
  return attempts
}

async function publish(js: JetStreamClient, { eventId, body }: Delivery) {
  const carrier = headers()
  carrier.set('Nats-Msg-Id', eventId)
  await js.publish(subject, body, { headers: carrier })
}

const commands = {
  start,
  /** `open`: deliveries that are not recorded as made. */
  open: () => open,
  /** Puts so many events on the stream as fast as it takes them, from a process of its own; answers when the first was begun. */
  async burst({ natsUrl, count, prefix }: { natsUrl: string; count: number; prefix: string }) {
    const nc = await connectTo(natsUrl)
    const js = nc.jetstream()
    const startedAt = Date.now()
    await inParallel(outstanding, Array(count).keys(), (n) => publish(js, deliveryOf(prefix, n)))
    await nc.close()
    return { startedAt }
  },
}
export type LeastDelivery = typeof commands
answerParent(commands)
