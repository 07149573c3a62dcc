import { setTimeout as sleep } from 'node:timers/promises'
import type { TransactionSql } from '../database/database.ts'
import { forgetNotes, handledFloor } from './handled-floors.ts'
import { hasNewest, useUpHandledNumbers } from './lost-tail.ts'
import { isVouchedFor } from './majority.ts'
import { newestOf } from './outbox-marks.ts'
import { restoreStream } from './provision.ts'
import type { DataService } from '../service/service.ts'

/** How far back a lost or restored stream is filled again at most; the stream itself keeps as long. */
const refillHours = 72
/** Events that one statement makes wait again, by their numbers. */
const seqsAStatement = 20_000
/** Blocks of a table (8 KiB) that one statement goes through: some thousand events, a fraction of what a statement may take. */
const blocksAStatement = 512
/** Within this time a new leader knows all that the others have. */
const lookAgainMs = 2_000

/**
 * A stream that is younger or shorter than the one remembered, or that has not our newest event, lost events. Those of the last 72 h wait
 * again, as if they had not been published, but those that all consumers are known to have handled. With the place that is remembered in
 * one transaction, so that a crash in it begins anew. Answers when the stream was made that has, or gets, them all; undefined while a
 * server tells of a stream that the others do not vouch for, or does not say what the stream has.
 */
export async function refillLostStream(app: DataService): Promise<string | undefined> {
  const { sql, log } = app
  // Before the stream is asked: another instance goes on publishing, and what it has remembered since then is not lost.
  const [remembered] = await sql<Position[]>`select ${sql(positionColumns)} from relay_position`
  const seen = await lookAt(app, remembered)
  if (!seen) return undefined
  await useUpHandledNumbers(app)
  const { created, state } = seen
  if (!seen.lacks) return created
  const isDone = await sql.begin(async (tx) => {
    const [before] = await tx<Position[]>`select ${tx(positionColumns)} from relay_position for update`
    if (before?.streamCreated !== remembered?.streamCreated || before?.lastSeq !== remembered?.lastSeq) return false
    if (!before) {
      const { count } = await tx`
        insert into relay_position (stream_created, last_seq) values (${created}, ${state.last_seq})
        on conflict (one) do nothing
      `
      return count === 1
    }
    const line = { before, created, lastSeq: state.last_seq }
    log.warn(line, 'the stream lost events: they are published again')
    const since = new Date(Date.now() - refillHours * 3_600_000)
    const floor = await handledFloor(tx, app.name)
    await forgetNotes(tx)
    const count = floor > 0 ? await waitAgainAfter(tx, floor, since) : await waitAgain(tx, since)
    await tx`
      update relay_position
      set stream_created = ${created}, last_seq = ${state.last_seq}, last_subject = null, last_subject_seq = null
    `
    log.warn({ ...line, count, floor }, 'events wait to be published again')
    return true
  })
  // Another instance has been at it meanwhile.
  return isDone ? created : refillLostStream(app)
}

/**
 * The stream as it is; one that lost something is looked at twice, where it has copies. A leader that is cut off from the others
 * goes on telling of the stream as it was, and one that was just elected has not yet applied all that it has.
 */
async function lookAt(app: DataService, remembered: Position | undefined) {
  const seen = await look(app, remembered)
  if (!remembered || !seen?.cluster?.replicas?.length || !seen.lacks) return seen
  await sleep(lookAgainMs)
  const again = await look(app, remembered)
  return again && isVouchedFor(again) ? again : undefined
}

async function look(app: DataService, remembered: Position | undefined) {
  const seen = await restoreStream(app.eventBus.nc, app.streamReplicas)
  const isShorter = remembered?.streamCreated !== seen.created || Number(remembered.lastSeq) > seen.state.last_seq
  const isThere = !isShorter && (await isNewestThere(app, remembered))
  return isThere === undefined ? undefined : { ...seen, lacks: !isThere }
}

function isNewestThere(app: DataService, { lastSubject: subject, lastSubjectSeq: seq }: Position) {
  return subject === null || hasNewest(app, { subject, seq: Number(seq) })
}

const positionColumns = ['stream_created', 'last_seq', 'last_subject', 'last_subject_seq']

interface Position {
  streamCreated: string
  lastSeq: string
  /** Null until something is published. */
  lastSubject: string | null
  lastSubjectSeq: string | null
}

/** What was published and is not older waits to be published again, by the same ids; answers how much that is. */
export async function redrive({ sql, log }: DataService, since: Date): Promise<number> {
  const count = await sql.begin(async (tx) => {
    await forgetNotes(tx, { andFloors: true })
    return waitAgain(tx, since)
  })
  log.warn({ count, since }, 'events are published again')
  return count
}

/** Goes through the tables piece by piece, since one statement for millions of events would take longer than any may. */
async function waitAgain(tx: TransactionSql, since: Date) {
  const partitions = await tx<{ name: string; blocks: number }[]>`
    select c.oid::regclass::text as name,
      (pg_relation_size(c.oid) / current_setting('block_size')::int)::int as blocks
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'outbox'::regclass order by c.relname
  `
  let count = 0
  for (const { name, blocks } of partitions) {
    for (let block = 0; block < blocks; block += blocksAStatement) {
      const [from, to] = [`(${block},0)`, `(${block + blocksAStatement},0)`]
      const { count: some } = await tx`
        update ${tx(name)} set published_at = null
        where ctid >= ${from}::tid and ctid < ${to}::tid and published_at is not null and created_at >= ${since}
      `
      count += some
    }
  }
  return count
}

/** Those behind the number, piece by piece as well. */
async function waitAgainAfter(tx: TransactionSql, seq: number, since: Date) {
  const [{ newest } = { newest: 0 }] = await tx<{ newest: number }[]>`select ${newestOf(tx)}::float8 as newest`
  let count = 0
  for (let first = seq; first < newest; first += seqsAStatement) {
    const { count: some } = await tx`
      update outbox set published_at = null
      where seq > ${first} and seq <= ${first + seqsAStatement} and published_at is not null and created_at >= ${since}
    `
    count += some
  }
  return count
}
