import { call, systemCaller } from '../bus/ask.ts'
import { isCancelled } from '../database/database.ts'
import type { Sweep } from '../database/housekeeping.ts'
import { counts } from '../metrics/registered.ts'
import type { DataService } from '../service/service.ts'
import { findHandled, handledRangesOf } from './handled-ranges.ts'
import { multirangeOf } from './note-handled.ts'
import { isDue, markRecorded, newestOf } from './outbox-marks.ts'
import { lookAtPlaces } from './places.ts'
import { auditedBy, type Consumer, ownerOf } from './provision.ts'

/** Looks that have taken too long become a quarter, and twice as large again with each sweep in which none has. */
const shrinkBy = 4
const growBy = 2
const fewestALook = 200
/** An event that is published again earlier than that is turned away for its id (`duplicate_window`). */
const againAfter = '130 s'
/** Consumers note what they have handled a second or a few later; and all instances look. */
const lookAgainAfter = '50 s'
/** Looks for which an event is left to a consumer that may have it in hand: one may be paused for minutes while newer ones are handled. */
const looksInHand = 15
/** How often events that nobody handles are published again. */
const mostTries = 3
const namedInLog = 20

interface Audited {
  app: DataService
  consumer: Consumer
  /** Events of a look. */
  seqsALook: number
}

interface Look {
  firstSeq: number
  lastSeq: number
  /** All that was recorded by the time of the look. */
  newestSeq: number
  /** What was due at looks before, and not handled. */
  missed: Missed
}

/** As `event_audits` has it. */
interface Missed {
  looks: number
  newestSeq: number
  streamSeq: number
  wasPassed: boolean
  tries: number
}

interface Unhandled {
  seq: number
  id: string
  /** It may be published again, and is not turned away for its id; null: it waits to be published. */
  isDue: boolean | null
}

/**
 * A sweep: asks the consumers of our events which ones they have handled, and publishes again what they have not. For a stream may lose
 * what it has acked: in a cluster that was split, a nats-server may take over the state of one that has less, and somebody may purge
 * it. It takes some minutes; consumers recognize by its id what comes twice.
 *
 * One look goes through `mostALook` events: a consumer of few of them has each read.
 */
export function auditEvents(app: DataService, { mostALook = 50_000 } = {}): Sweep {
  countOf(app)
  let seqsALook = mostALook
  return async function sweepUnhandled() {
    await markRecorded(app.sql)
    let isTooLong = false
    for (const consumer of auditedBy(app.name)) {
      try {
        await audit({ app, consumer, seqsALook })
      } catch (err) {
        isTooLong ||= isCancelled(err)
        app.log.warn({ err, consumer: consumer.name }, 'whether its events were handled cannot be seen now')
      }
    }
    // With the same ones again it would come no further, however often.
    seqsALook = isTooLong
      ? Math.max(fewestALook, Math.floor(seqsALook / shrinkBy))
      : Math.min(mostALook, seqsALook * growBy)
    return 0
  }
}

/** In the language of `like`. */
const patternOf = ({ subject }: Consumer) => subject.replace('>', '%')

/** One look after the other, until one has to wait. */
async function audit(audited: Audited) {
  const { app, consumer } = audited
  await begin(audited)
  for (let look = await nextLook(audited); look; look = await nextLook(audited)) {
    if (!(await isHandled(audited, look))) return
    await app.sql`
      update event_audits
      set audited_seq = ${look.lastSeq}, suspected_seq = null, looks = 0, was_passed = false, looked_at = null, tries = 0
      where consumer = ${consumer.name}
    `
  }
}

/**
 * Begins the audit of a consumer with its first answer, at what is recorded by then: what was recorded before may have been handled by a
 * version that notes nothing. Where nothing is recorded yet, no answer is needed.
 */
async function begin(audited: Audited) {
  const { sql } = audited.app
  const { name } = audited.consumer
  const begun = await sql`select from event_audits where consumer = ${name}`
  if (begun.length > 0) return
  const [{ newest } = { newest: 0 }] = await sql<{ newest: number }[]>`select ${newestOf(sql)}::float8 as newest`
  if (newest > 0) await ask(audited, { firstSeq: 1, lastSeq: 1 })
  await sql`insert into event_audits (consumer, audited_seq) values (${name}, ${newestOf(sql)}) on conflict do nothing`
}

/** What is to be looked at; undefined when nothing is due. What was missed is looked at by itself, when notes of it had time to come. */
async function nextLook({ app: { sql }, consumer: { name }, seqsALook }: Audited): Promise<Look | undefined> {
  const [look] = await sql<Look[]>`
    select (audited_seq + 1)::float8 as first_seq,
      least(due_seq, suspected_seq, audited_seq + ${seqsALook})::float8 as last_seq,
      ${newestOf(sql)}::float8 as newest_seq,
      json_build_object('looks', looks, 'newestSeq', newest_seq, 'streamSeq', stream_seq, 'wasPassed', was_passed, 'tries', tries)
        as missed
    from event_audits
    join (select max(seq) as due_seq from outbox_marks where ${isDue(sql)}) m on due_seq > audited_seq
    where consumer = ${name} and (looked_at < now() - ${lookAgainAfter}::interval) is not false
  `
  return look
}

/** Whether these were handled, or are given up. What was not is published again when it surely will not be. */
async function isHandled(audited: Audited, look: Look): Promise<boolean> {
  const { app, consumer } = audited
  const { seqs, newest } = await ask(audited, look)
  const unhandled = seqs === all(look) ? [] : await find(audited, look, seqs)
  if (unhandled.length === 0) return true
  const place = await placeOf(app, consumer)
  const { newestSeq, missed } = look
  const begun = { looks: 0, newestSeq, streamSeq: place.streamSeq, wasPassed: false, tries: missed.tries }
  const since = missed.looks > 0 ? missed : begun
  const isOvertaken = since.looks >= looksInHand && (newest ?? 0) > since.newestSeq
  const isLost = since.wasPassed || isOvertaken
  // Until then some may be on their way.
  const isAllDue = unhandled.every(({ isDue }) => isDue)
  if (!isAllDue || !isLost) {
    const wasPassed = place.isIdle || place.ackedSeq >= since.streamSeq
    await note(audited, look, isAllDue ? { ...since, looks: since.looks + 1, wasPassed } : begun)
    return false
  }
  const line = lineOf(consumer.name, unhandled)
  if (missed.tries === mostTries) {
    app.log.error(line, 'events were published again and again, and not handled: they are given up')
    return true
  }
  app.log.error(line, 'events were published and never handled: they are published again')
  await publishAgain(app, unhandled)
  await note(audited, look, { ...begun, tries: missed.tries + 1 })
  return false
}

const note = ({ app: { sql }, consumer }: Audited, { lastSeq }: Look, missed: Missed) => sql`
  update event_audits
  set suspected_seq = ${lastSeq}, looks = ${missed.looks}, newest_seq = ${missed.newestSeq}, stream_seq = ${missed.streamSeq},
    was_passed = ${missed.wasPassed}, looked_at = now(), tries = ${missed.tries}
  where consumer = ${consumer.name}
`

const all = ({ firstSeq, lastSeq }: Look) => `{[${firstSeq},${lastSeq + 1})}`

const lineOf = (consumer: string, unhandled: Unhandled[]) => ({
  consumer,
  count: unhandled.length,
  events: unhandled.slice(0, namedInLog).map(({ id }) => id),
})

/** By ranges: for a list, the index would be searched for each number, which takes 10 s for some ten thousand. */
async function publishAgain(app: DataService, unhandled: Unhandled[]) {
  const seqs = unhandled.map(({ seq }) => seq)
  await app.sql`
    update outbox set published_at = null
    where seq between ${seqs[0] ?? 0} and ${seqs.at(-1) ?? 0} and seq <@ ${multirangeOf(seqs)}::int8multirange
  `
  countOf(app).inc(unhandled.length)
}

function ask({ app, consumer }: Audited, { firstSeq, lastSeq }: Pick<Look, 'firstSeq' | 'lastSeq'>) {
  const service = ownerOf(consumer)
  const body = { consumer: consumer.name, source: app.name, first: firstSeq, last: lastSeq }
  if (service === app.name) return findHandled(app.sql, body)
  return call(app, handledRangesOf(service), { body }, systemCaller())
}

const find = ({ app: { sql }, consumer }: Audited, { firstSeq, lastSeq }: Look, handled: string) => sql<Unhandled[]>`
  select seq::float8, id, published_at < now() - ${againAfter}::interval as is_due from outbox
  where seq between ${firstSeq} and ${lastSeq} and refused is null and subject like ${patternOf(consumer)}
    and not seq <@ ${handled}::int8multirange
  order by seq
`

async function placeOf(app: DataService, consumer: Consumer) {
  const { lastSeq, places } = await lookAtPlaces(app)
  const { ackedSeq = 0, isIdle = false } = places.find(({ name }) => name === consumer.name) ?? {}
  return { streamSeq: lastSeq, ackedSeq, isIdle }
}

const countOf = ({ probes }: Pick<DataService, 'probes'>) =>
  counts(probes.metrics, {
    name: 'svc_outbox_unhandled_events_total',
    help: 'Events that were published, and published again, since a consumer had not handled them.',
  })
