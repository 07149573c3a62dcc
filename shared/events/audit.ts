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
/** Notes of what a consumer has handled come later, by a second or some. */
const lookAgainAfter = '20 s'
/** So often events are published again that nobody handles. */
const mostTries = 3
const namedInLog = 20

interface Audited {
  app: DataService
  consumer: Consumer
}

interface Look {
  firstSeq: string
  lastSeq: string
  /** All that was recorded by the time of the look. */
  newestSeq: string
  tries: number
  /** What the look before this saw, when it missed some; its consumer had been given these, or never will be, when it was idle then. */
  before: { newestSeq: number; wasIdle: boolean } | null
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
  countOf(app)
  const audited = Object.values<Consumer>(consumers).filter((one) => isAuditedBy(one, app.name))
  return async function sweepUnhandled() {
    await mark(app)
    for (const consumer of audited) {
      try {
        await audit({ app, consumer })
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
  const { app, consumer } = audited
  for (let look = await nextLook(audited); look; look = await nextLook(audited)) {
    if (!(await isHandled(audited, look))) return
    await app.sql`
      update event_audits
      set audited_seq = ${look.lastSeq}, suspected_seq = null, newest_seq = null, was_idle = null, looked_at = null, tries = 0
      where consumer = ${consumer.name}
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

/** What is to be looked at; undefined when nothing is due. What was missed is looked at by itself, when notes of it had time to come. */
async function nextLook({ app: { sql }, consumer: { name } }: Audited): Promise<Look | undefined> {
  // What was recorded before the first look was perhaps handled by a version that notes nothing.
  await sql`
    insert into event_audits (consumer, audited_seq) values (${name}, ${newestOf(sql)}) on conflict do nothing
  `
  const [look] = await sql<Look[]>`
    select audited_seq + 1 as first_seq, least(due_seq, suspected_seq, audited_seq + ${seqsALook}) as last_seq,
      ${newestOf(sql)} as newest_seq, tries,
      case when suspected_seq is not null then json_build_object('newestSeq', newest_seq, 'wasIdle', was_idle) end as before
    from event_audits
    join (select max(seq) as due_seq from outbox_marks where ${isDue(sql)}) m on due_seq > audited_seq
    where consumer = ${name} and (looked_at < now() - ${lookAgainAfter}::interval) is not false
  `
  return look
}

/** Whether these were handled, or are given up. What was not is published again when it surely will not be. */
async function isHandled(audited: Audited, look: Look): Promise<boolean> {
  const { app, consumer } = audited
  const { before, tries } = look
  const { seqs, newest } = await ask(audited, look)
  const unhandled = seqs === all(look) ? [] : await find(audited, look, seqs)
  if (unhandled.length === 0) return true
  const isPassed = before !== null && (before.wasIdle || Number(newest ?? 0) > before.newestSeq)
  if (!isPassed || unhandled.some(({ isDue }) => !isDue)) {
    await note(audited, look, {
      newestSeq: before?.newestSeq ?? look.newestSeq,
      wasIdle: await isIdle(app, consumer),
      tries,
    })
    return false
  }
  const line = lineOf(consumer.name, unhandled)
  if (tries === mostTries) {
    app.log.error(line, 'events were published again and again, and not handled: they are given up')
    return true
  }
  app.log.error(line, 'events were published and never handled: they are published again')
  await publishAgain(app, unhandled)
  await note(audited, look, { newestSeq: look.newestSeq, wasIdle: false, tries: tries + 1 })
  return false
}

const note = (
  { app: { sql }, consumer }: Audited,
  { lastSeq }: Look,
  { newestSeq, wasIdle, tries }: { newestSeq: number | string; wasIdle: boolean; tries: number },
) => sql`
  update event_audits
  set suspected_seq = ${lastSeq}, newest_seq = ${newestSeq}, was_idle = ${wasIdle}, looked_at = now(), tries = ${tries}
  where consumer = ${consumer.name}
`

const all = ({ firstSeq, lastSeq }: Look) => `{[${firstSeq},${Number(lastSeq) + 1})}`

const lineOf = (consumer: string, unhandled: Unhandled[]) => ({
  consumer,
  count: unhandled.length,
  events: unhandled.slice(0, namedInLog).map(({ id }) => id),
})

async function publishAgain(app: DataService, unhandled: Unhandled[]) {
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
