import { call, systemCaller } from '../bus/ask.ts'
import type { Sql } from '../database/database.ts'
import type { Sweep } from '../database/housekeeping.ts'
import { counts } from '../metrics/registered.ts'
import type { DataService } from '../service/service.ts'
import { findHandled, handledRangesOf } from './handled-ranges.ts'
import { askAgainMs, type Consumer, consumers, isAuditedBy, managerOf, ownerOf } from './provision.ts'
import { streamName } from './stream.ts'

/** Events that one look goes through. */
const seqsALook = 50_000
/** Since they were recorded, or would have been: longer than any transaction takes. */
const dueAfter = '150 s'
/** What is published again sooner is turned away for its id (`duplicate_window`). */
const againAfter = '130 s'
/** So often events are published again that nobody handles. */
const mostTries = 3
const namedInLog = 20

/** What was not handled by the time of a look. */
interface Suspicion {
  lastSeq: string
  /** The newest event of ours by then. */
  newestSeq: string
  /** Whether its consumer had all that the stream has, and so had been given these or never will be. */
  wasIdle: boolean
  /** How often they were published again. */
  tries: number
}

interface Audited {
  app: DataService
  consumer: Consumer
  /** By consumer. */
  suspicions: Map<string, Suspicion>
}

interface Look {
  firstSeq: string
  lastSeq: string
  /** All that was recorded by the time of the look. */
  newestSeq: string
}

interface Unhandled {
  seq: string
  id: string
  /** It may be published again, and is not turned away for its id; null: it waits to be published. */
  isDue: boolean | null
}

/**
 * A sweep: asks the consumers of our events which ones they have handled, and publishes again what they have not. A stream may lose what
 * it has acked: a nats-server of a cluster that was split takes the word of one that has less for its own, and somebody may
 * purge it. It takes some minutes; consumers know by its id what comes twice.
 */
export function auditEvents(app: DataService): Sweep {
  const suspicions = new Map<string, Suspicion>()
  countOf(app)
  const audited = Object.values<Consumer>(consumers).filter((one) => isAuditedBy(one, app.name))
  return async function sweepUnhandled() {
    await mark(app)
    for (const consumer of audited) {
      try {
        await audit({ app, consumer, suspicions })
      } catch (err) {
        app.log.warn({ err, consumer: consumer.name }, 'whether its events were handled cannot be seen now')
      }
    }
    return 0
  }
}

/** In the language of `like`. */
const patternOf = ({ subject }: Consumer) => subject.replace('>', '%')

/** One look after the other, until one has to wait. */
async function audit(audited: Audited) {
  for (let look = await nextLook(audited); look; look = await nextLook(audited)) {
    if (!(await isHandled(audited, look))) return
    await audited.app.sql`
      update event_audits set audited_seq = greatest(audited_seq, ${look.lastSeq}::bigint)
      where consumer = ${audited.consumer.name}
    `
  }
}

/** Of what is recorded, the newest event; 0: there is none. */
const newestOf = (sql: Sql) => sql`(select case when is_called then last_value else 0 end from outbox_seq)`

/** Notes what is recorded by now; of earlier notes those that are not due yet are kept, and one that is. */
async function mark({ sql }: DataService) {
  await sql`insert into outbox_marks (seq) values (${newestOf(sql)}) on conflict do nothing`
  await sql`delete from outbox_marks where seq < (select max(seq) from outbox_marks where ${isDue(sql)})`
}

const isDue = (sql: Sql) => sql`at < now() - ${dueAfter}::interval`

/** What is to be looked at; undefined when there is nothing that is due. What is suspected is looked at by itself. */
async function nextLook({ app: { sql }, consumer: { name }, suspicions }: Audited): Promise<Look | undefined> {
  // What was recorded before the first look was perhaps handled by a version that notes nothing.
  await sql`
    insert into event_audits (consumer, audited_seq) values (${name}, ${newestOf(sql)}) on conflict do nothing
  `
  const suspectedSeq = suspicions.get(name)?.lastSeq ?? null
  const [look] = await sql<Look[]>`
    select audited_seq + 1 as first_seq, last_seq, ${newestOf(sql)} as newest_seq
    from event_audits
    join (select max(seq) as due_seq from outbox_marks where ${isDue(sql)}) m on due_seq > audited_seq
    cross join lateral (
      select least(
        due_seq, audited_seq + ${seqsALook}, case when ${suspectedSeq}::bigint > audited_seq then ${suspectedSeq}::bigint end
      ) as last_seq
    ) l
    where consumer = ${name}
  `
  return look
}

/** Whether these were handled, or are given up. What was not is published again when it surely will not be. */
async function isHandled(audited: Audited, look: Look): Promise<boolean> {
  const { app, consumer, suspicions } = audited
  const { name } = consumer
  const { seqs, newest } = await ask(audited, look)
  const unhandled = seqs === all(look) ? [] : await find(audited, look, seqs)
  const before = suspicions.get(name)
  suspicions.delete(name)
  if (unhandled.length === 0) return true
  const { lastSeq, newestSeq } = look
  const isSame = before?.lastSeq === lastSeq
  const suspicion = { newestSeq, tries: 0, ...(isSame && before), lastSeq, wasIdle: await isIdle(app, consumer) }
  suspicions.set(name, suspicion)
  const isPassed = isSame && (before.wasIdle || Number(newest ?? 0) > Number(before.newestSeq))
  if (!isPassed || unhandled.some(({ isDue }) => !isDue)) return false
  if (suspicion.tries === mostTries) {
    app.log.error(lineOf(name, unhandled), 'events were published again and again, and not handled: they are given up')
    return true
  }
  await publishAgain(audited, unhandled)
  suspicions.set(name, { lastSeq, newestSeq, wasIdle: false, tries: suspicion.tries + 1 })
  return false
}

const all = ({ firstSeq, lastSeq }: Look) => `{[${firstSeq},${Number(lastSeq) + 1})}`

const lineOf = (consumer: string, unhandled: Unhandled[]) => ({
  consumer,
  count: unhandled.length,
  events: unhandled.slice(0, namedInLog).map(({ id }) => id),
})

async function publishAgain({ app, consumer }: Audited, unhandled: Unhandled[]) {
  app.log.error(lineOf(consumer.name, unhandled), 'events were published and never handled: they are published again')
  countOf(app).inc(unhandled.length)
  const seqs = unhandled.map(({ seq }) => seq)
  await app.sql`
    update outbox set published_at = null
    where seq between ${seqs[0] ?? 0} and ${seqs.at(-1) ?? 0} and seq = any(${seqs}::bigint[])
  `
}

function ask({ app, consumer }: Audited, { firstSeq, lastSeq }: Look) {
  const service = ownerOf(consumer)
  const body = { consumer: consumer.name, source: app.name, first: Number(firstSeq), last: Number(lastSeq) }
  if (service === app.name) return findHandled(app.sql, body)
  return call(app, handledRangesOf(service), { body }, systemCaller())
}

const find = ({ app: { sql }, consumer }: Audited, { firstSeq, lastSeq }: Look, handled: string) => sql<Unhandled[]>`
  select seq, id, published_at < now() - ${againAfter}::interval as is_due from outbox
  where seq between ${firstSeq} and ${lastSeq} and refused is null and subject like ${patternOf(consumer)}
    and not seq <@ ${handled}::int8multirange
  order by seq
`

/** Nothing in the stream waits for it, and nothing is in its hands. */
async function isIdle({ eventBus }: DataService, { name }: Consumer) {
  const jsm = await managerOf(eventBus.nc, askAgainMs)
  const all = await jsm.consumers.list(streamName).next()
  return all.some((one) => one.name === name && one.num_pending + one.num_ack_pending === 0)
}

const countOf = ({ probes }: Pick<DataService, 'probes'>) =>
  counts(probes.metrics, {
    name: 'svc_outbox_unhandled_events_total',
    help: 'Events that were published, and published again, since a consumer had not handled them.',
  })
