import { ErrorCode, headers, NatsError } from 'nats'
import { z } from 'zod'
import type { TransactionSql } from './database.ts'
import { startLoop } from './loop.ts'
import { restoreStream } from './provision.ts'
import type { DataService } from './service.ts'
import type { EventHeaders } from './events.ts'
import { counts } from './metrics/registered.ts'
import { eventHeader, streamName } from './stream.ts'

/** Rows a pass: 256 outstanding publishes are four times as fast as one by one. */
const batchRows = 256
const pollMs = 500
/** Under load, passes gather for that long. */
const spacingMs = 5
const lockRetryMs = 10
const failureRetryMs = 250
const ackTimeoutMs = 2_000
/** How far back a lost or restored stream is filled again; the stream itself keeps as long. */
const redriveHours = 72

export interface Relay {
  /** Publishes what has been committed; call it after every commit that emitted. */
  wake: () => void
  /** Publishes again what was recorded since; consumers drop what they have handled. */
  redrive: (since: Date) => Promise<number>
  stop: () => Promise<void>
}

interface Row {
  seq: string
  id: string
  subject: string
  headers: EventHeaders
  payload: Uint8Array
}

type Result = { seq: string; published: number } | { seq: string; refused: string } | { seq: string; failed: unknown }

/**
 * Carries the outbox to JetStream, in order; one instance of a service at a time. A crash repeats publishes with the same
 * id. A stream that is younger or shorter than the one remembered lost events: the last 72 h are published again.
 */
export function startRelay(app: DataService): Relay {
  let checked = false

  async function turn() {
    if (!app.isConnected()) return pollMs
    checked ||= await checkStream(app).then(() => true, waitsForLeader)
    if (!checked) return failureRetryMs
    const { more, retryMs } = await app.sql.begin((tx) => pass(tx, app))
    if (retryMs >= failureRetryMs) checked = false
    return retryMs || (more ? 0 : pollMs)
  }

  /** The servers are electing, or starting: that passes. */
  function waitsForLeader(err: unknown) {
    if (!(err instanceof NatsError)) throw err
    app.log.warn({ err }, 'relay')
    return false
  }

  const loop = startLoop(app.log, 'relay', turn, { spacingMs })
  app.onReconnect(() => {
    checked = false
    loop.wake()
  })
  loop.wake()
  return {
    wake: loop.wake,
    redrive: (since) => redrive(app, since).finally(loop.wake),
    async stop() {
      await loop.stop()
      // What was committed last goes out now; if it cannot, another instance or the next start publishes it.
      await turn().catch((err: unknown) => app.log.warn({ err }, 'relay'))
    },
  }
}

async function redrive({ sql, log }: DataService, since: Date) {
  const { count } = await sql`
    update outbox set published_at = null where created_at >= ${since} and published_at is not null
  `
  log.warn({ count, since }, 'events are published again')
  return count
}

async function pass(tx: TransactionSql, app: DataService) {
  const { log, name } = app
  const [lock] = await tx<{ mine: boolean }[]>`select pg_try_advisory_xact_lock(hashtext(${`relay ${name}`})) as mine`
  if (!lock?.mine) return { more: true, retryMs: lockRetryMs }
  const rows = await tx<Row[]>`
    select seq, id, subject, headers, payload from outbox
    where published_at is null and refused is null order by seq limit ${batchRows}
  `
  if (rows.length === 0) return { more: false, retryMs: 0 }
  const results = await Promise.all(rows.map((row) => publish(app, row)))
  const published = results.flatMap((result) => ('published' in result ? [result] : []))
  const refused = results.flatMap((result) => ('refused' in result ? [result] : []))
  const failed = results.find((result) => 'failed' in result)
  if (published.length > 0) await markPublished(tx, published)
  countOf(app).inc({ outcome: 'published' }, published.length)
  countOf(app).inc({ outcome: 'refused' }, refused.length)
  if (failed) countOf(app).inc({ outcome: 'failed' }, results.length - published.length - refused.length)
  for (const row of refused) {
    log.error(row, 'an event cannot be published and was set aside')
    await tx`update outbox set refused = ${row.refused} where seq = ${row.seq}`
  }
  if (failed && 'failed' in failed) log.warn({ err: failed.failed, waiting: rows.length - published.length }, 'relay')
  return { more: failed !== undefined || rows.length === batchRows, retryMs: failed ? failureRetryMs : 0 }
}

const countOf = ({ probes }: DataService) =>
  counts(probes.metrics, {
    name: 'svc_outbox_events_total',
    help: 'Publishes of committed events: published, failed (tried again), or refused by the client for good and set aside.',
    labelNames: ['outcome'],
    from: [['published'], ['failed'], ['refused']],
  })

async function markPublished(tx: TransactionSql, published: { seq: string; published: number }[]) {
  const seqs = published.map(({ seq }) => seq)
  await tx`
    update outbox set published_at = now()
    where published_at is null and refused is null and seq = any(${seqs}::bigint[])
  `
  const last = published.reduce((max, { published: seq }) => Math.max(max, seq), 0)
  await tx`update relay_position set last_seq = greatest(last_seq, ${last})`
}

async function publish(app: DataService, row: Row): Promise<Result> {
  const { trace = '' } = row.headers
  const span = app.tracer?.begin(row.subject, { kind: 'producer', parent: trace })
  const result = await put(app, span ? { ...row, headers: { ...row.headers, trace: span.traceparent } } : row)
  span?.end('published' in result ? undefined : 'not published')
  return result
}

async function put({ request }: DataService, row: Row): Promise<Result> {
  const carrier = headers()
  carrier.set('Nats-Msg-Id', row.id)
  carrier.set('Nats-Expected-Stream', streamName)
  carrier.set(eventHeader, JSON.stringify(row.headers))
  try {
    const { data } = await request(row.subject, row.payload, carrier, ackTimeoutMs)
    const ack = PublishAck.parse(JSON.parse(Buffer.from(data).toString()))
    return 'seq' in ack
      ? { seq: row.seq, published: ack.seq }
      : { seq: row.seq, failed: new Error(ack.error.description) }
  } catch (err) {
    const code = err instanceof NatsError ? err.code : ''
    const never = code === ErrorCode.MaxPayloadExceeded || code === ErrorCode.BadSubject || code === ErrorCode.BadHeader
    return never ? { seq: row.seq, refused: code } : { seq: row.seq, failed: err }
  }
}

/** What JetStream says of a publish. */
const PublishAck = z.union([
  z.object({ seq: z.number() }),
  z.object({ error: z.object({ description: z.string().default('refused') }) }),
])

async function checkStream({ nc, sql, log, streamReplicas }: DataService) {
  const info = await restoreStream(nc, streamReplicas)
  const created = info.created
  await sql.begin(async (tx) => {
    const [before] = await tx<{ streamCreated: string; lastSeq: string }[]>`
      select stream_created, last_seq from relay_position for update
    `
    if (!before) {
      await tx`
        insert into relay_position (stream_created, last_seq) values (${created}, ${info.state.last_seq})
        on conflict (one) do nothing
      `
      return
    }
    if (before.streamCreated === created && Number(before.lastSeq) <= info.state.last_seq) return
    const { count } = await tx`
      update outbox set published_at = null
      where created_at > now() - ${redriveHours} * interval '1 hour' and published_at is not null
    `
    await tx`update relay_position set stream_created = ${created}, last_seq = ${info.state.last_seq}`
    log.warn(
      { count, before, created, lastSeq: info.state.last_seq },
      'the stream lost events: they are published again',
    )
  })
}
