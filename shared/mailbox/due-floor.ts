import type { Fragment, Sql, TransactionSql } from '../database/database.ts'
import { restAfter } from '../database/rest-after.ts'

/** Where looks for what is due in a queue begin. */
export interface DueFloor {
  /** The time from which on the queue is looked through, in seconds since 1970 by the database's clock; null: all of it is. */
  from: () => number | null
  /** Before it nothing was due at the last look at all, however long ago; null: that look was cheap. */
  known: () => number | null
  /** How soon all is looked through again, in ms. */
  restMs: () => number
  /**
   * A look from there took so long; before `floor` nothing was open, and what is new will not be due. Null: it was cancelled, or failed,
   * and what was known before holds.
   */
  looked: (look: { from: number | null; floor: number | null }, tookMs: number) => void
}

/**
 * When looks become dear (rest-after.ts), most of them begin where nothing was open before at the last look at all. What comes to be due
 * earlier than that after all waits for the next one: what is committed ten seconds after its time, or written by a clock that was put back.
 */
export function dueFloor(now: () => number = () => performance.now()): DueFloor {
  let known: number | null = null
  let allAt = 0
  const restMs = () => Math.max(0, allAt - now())
  return {
    from: () => (restMs() > 0 ? known : null),
    known: () => known,
    restMs,
    looked({ from, floor }, tookMs) {
      if (from !== null) return
      const rest = restAfter(tookMs)
      known = rest > 0 ? (floor ?? known) : null
      allAt = known === null ? 0 : now() + rest
    },
  }
}

/** The floor that a look tells whose first row is due then (null: nothing is), a millisecond earlier than it may have been rounded to. */
export const floorOf = (sql: Sql | TransactionSql, firstDue: Fragment): Fragment =>
  sql`(extract(epoch from least(${firstDue}, now() - interval '10 seconds'))::float8 - 0.001)`

/** A floor as a time in a statement. */
export const timeOfFloor = (sql: Sql | TransactionSql, floor: Fragment | number | null): Fragment =>
  sql`coalesce(to_timestamp(${floor}::float8), '-infinity'::timestamptz)`
