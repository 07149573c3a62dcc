import type { Sql, TransactionSql } from '../database/database.ts'
import { makingRoom, ownSession } from '../database/own-session.ts'
import { seqFloor } from '../database/seq-floor.ts'

/** An event that waits to be published. */
export interface WaitingEvent {
  seq: string
  id: string
  subject: string
  /** EventHeaders as JSON. */
  headers: string
  payload: string
}

/** What became of the events of a turn, by their `seq`; those in neither list go on waiting. */
export interface Published {
  published: string[]
  refused: { seq: string; why: string }[]
  /** The newest place in the stream that one of them got, and its subject. */
  last: { seq: number; subject: string } | undefined
}

interface Waiting extends WaitingEvent {
  /** The partition that it stands in. */
  partition: string
}

interface Taken {
  mine: boolean
  begun: string
  /** Null when none waits. */
  waiting: Waiting[]
}

export interface Outbox {
  /** Whether an event waits. */
  isWaiting: () => Promise<boolean>
  /**
   * Gives the oldest events to `publish` and records what it answers; answers how many there were, or null when the turn is
   * another instance's, or was lost meanwhile and nothing was recorded.
   */
  turn: (rows: number, publish: (events: WaitingEvent[]) => Promise<Published>) => Promise<number | null>
  /** Events that were published may wait again. */
  lookAtAll: () => void
  close: () => Promise<void>
}

/**
 * The outbox as its relay sees it. A turn is a transaction that holds the service's lock, in two exchanges with the server:
 * begin and take, record and commit. A process that dies loses the lock at once, one that is frozen after 10 s
 * (idle_in_transaction_session_timeout).
 *
 * The commits do not wait for the disk. A crash of the server takes the last of them back: the same events are published
 * again with the same ids, as when the relay dies before it records.
 */
export function openOutbox({ sql, name }: { sql: Sql; name: string }): Outbox {
  const session = ownSession(sql, { synchronous_commit: 'off', plan_cache_mode: 'force_generic_plan' })
  const floor = seqFloor()

  async function look<T>(read: (from: number) => Promise<T>) {
    const [from, begunAt] = [floor.from(), performance.now()]
    // Also one that was cancelled, since it took too long.
    return read(from).finally(() => floor.looked(from, performance.now() - begunAt))
  }

  async function turn(rows: number, publish: (events: WaitingEvent[]) => Promise<Published>) {
    const taken = await look((from) => take(session, name, rows, from))
    if (taken.waiting.length === 0) {
      await session`commit`
      return taken.mine ? 0 : null
    }
    let isRecorded = false
    try {
      const outcome = await publish(taken.waiting)
      for (const { seq, why } of outcome.refused) await session`update outbox set refused = ${why} where seq = ${seq}`
      isRecorded = await recordAndEnd(session, taken, outcome)
      floor.settledBelow(firstLeft(taken.waiting, outcome))
    } finally {
      if (!isRecorded) floor.forget()
    }
    return isRecorded ? taken.waiting.length : null
  }

  return {
    async isWaiting() {
      const isThere = (from: number) => session`select from outbox where ${waits(session)} and seq >= ${from} limit 1`
      const found = await makingRoom(sql, () => look(isThere))
      return found.length > 0
    },
    turn: (rows, publish) =>
      makingRoom(sql, () => turn(rows, publish)).catch(async (err: unknown) => {
        await session`rollback`.catch(() => {})
        throw err
      }),
    lookAtAll: floor.forget,
    close: () => session.end({ timeout: 1 }),
  }
}

/** The number of the first event that goes on waiting, of those that were taken; else the one behind them. */
function firstLeft(taken: WaitingEvent[], { published, refused }: Published) {
  const settled = new Set([...published, ...refused.map(({ seq }) => seq)])
  const left = taken.find(({ seq }) => !settled.has(seq))
  return left ? Number(left.seq) : Number(taken.at(-1)?.seq ?? 0) + 1
}

/** Of a row of `outbox`. */
export const waits = (sql: Sql | TransactionSql) => sql`published_at is null and refused is null`

type TakenRow = Pick<Taken, 'mine' | 'begun'> & (Waiting | { seq: null })

/** Begins the turn. Its view may be a little older than its lock: then events come again that were recorded just before. */
async function take(session: Sql, name: string, rows: number, from: number): Promise<Taken> {
  const [, taken] = await Promise.all([
    session`begin`,
    session<TakenRow[]>`
      with lock as materialized (select pg_try_advisory_xact_lock(hashtext(${`relay ${name}`})) as mine)
      select lock.mine, now()::text as begun, o.seq, o.id, o.subject, o.headers, o.payload, o.partition
      from lock left join lateral (
        select seq, id, subject, headers::text, convert_from(payload, 'UTF8') as payload,
          tableoid::regclass::text as partition
        from outbox where lock.mine and ${waits(session)} and seq >= ${from} order by seq limit ${rows}
      ) o on true
      order by o.seq
    `,
  ])
  const [first] = taken
  if (!first) throw new Error('a lock without a row')
  return { mine: first.mine, begun: first.begun, waiting: taken.filter((row) => row.seq !== null) }
}

/**
 * Answers false when the turn was lost. Nothing may be recorded outside of its transaction, which is recognized by its time: for another
 * instance may have taken the events since, and may have to publish them again into a stream that was lost meanwhile.
 */
async function recordAndEnd(session: Sql, { begun, waiting }: Taken, { published, last }: Published) {
  const ofSeq = new Map(waiting.map(({ seq, partition }) => [seq, partition]))
  const parts = [...Map.groupBy(published, (seq) => ofSeq.get(seq) ?? 'outbox')]
  // Each in its partition, mostly one: an update of the table itself opens all of its dozen, for 0.1 ms.
  const records = parts.map(
    ([partition, seqs]) => session`
      with recorded as (
        update ${session(partition)} set published_at = now()
        where now()::text = ${begun} and ${waits(session)}
          and seq = any(${`{${seqs.join()}}`}::text::bigint[])
      )
      update relay_position set last_seq = greatest(last_seq, ${last?.seq ?? 0}),
        last_subject = case when ${last?.seq ?? 0} > coalesce(last_subject_seq, 0) then ${last?.subject ?? null} else last_subject end,
        last_subject_seq = nullif(greatest(last_subject_seq, ${last?.seq ?? 0}), 0)
      where now()::text = ${begun}
    `,
  )
  const answers = await Promise.all([...records, session`commit`])
  return answers.slice(0, records.length).every(({ count }) => count > 0)
}
