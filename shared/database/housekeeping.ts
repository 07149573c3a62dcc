import { setTimeout as sleep } from 'node:timers/promises'
import { isAwayFromAll, isDatabaseAway, type Sql } from './database.ts'
import { forgetHandled, mergeHandled } from '../events/sweep-handled.ts'
import { sweepKeys } from '../idempotency/idempotency.ts'
import { makingRoom, ownSession } from './own-session.ts'
import { type Partitions, keepPartitions, makePartitions } from './partitions.ts'
import type { DataService } from '../service/service.ts'

/** Deletes some of what is past its time, at most some thousand rows; answers how many. */
export type Sweep = (sql: Sql) => Promise<number>

export interface Housekeeping {
  /** The service's partitioned tables; the outbox is among them by itself. */
  partitions: Partitions[]
  /**
   * Repeated until they find nothing, or the hour is over. `handled_events`, `handled_ranges`, `dead_events` and the keys of the schema
   * `idempotency` are swept by themselves: the last by each service, since each may have a database of its own.
   */
  sweeps?: Sweep[]
  /** Those that have no hour to wait; every minute. */
  minutely?: Sweep[]
}

type App = Pick<DataService, 'name' | 'sql' | 'log'>

const hourMs = 60 * 60 * 1000
const minuteMs = 60 * 1000
/**
 * One day more than the stream keeps events (72 h), so that nothing it holds is unknown here. What waits to be published when
 * all comes back after a week is published.
 */
const outbox: Partitions = {
  table: 'outbox',
  by: 'time',
  keepDays: 4,
  open: 'published_at is null and refused is null',
}

/**
 * Makes partitions ahead, drops old ones and sweeps, every hour (some sweeps every minute, however long the others take), in one instance
 * of the service at a time. What the database was away for is done within a minute of its return. Resolves when the partitions of today are
 * there: call it before the service is ready.
 */
export async function startHousekeeping(app: App, housekeeping: Housekeeping): Promise<{ stop: () => Promise<void> }> {
  const { partitions, sweeps = [], minutely = [] } = housekeeping
  const tables = [outbox, ...partitions]
  let stopped = false
  let dueAt = -Infinity

  /** One with work for days goes on in the next hour: meanwhile partitions are kept, and the others have their turn. */
  async function sweepAll(all: Sweep[], until: number) {
    for (const sweep of all) {
      await guarded(app, sweep.name, async () => {
        while (!stopped && (await sweep(app.sql)) > 0 && performance.now() < until);
      })
    }
  }

  const hourly = inOneRun(app, async () => {
    while (!stopped && performance.now() >= dueAt) {
      // Half a minute early, so that the tick of the hour is not just before it.
      const nextAt = performance.now() + hourMs - minuteMs / 2
      await alone(app, 'partitions', () => keepAll(app, tables))
      await alone(app, 'sweeps', () => sweepAll([...ofAll(), ...sweeps], nextAt))
      dueAt = nextAt
    }
  })
  const everyMinute = inOneRun(app, async () => {
    await alone(app, 'minutely sweeps', () => sweepAll([mergeHandled, ...minutely], performance.now() + minuteMs))
  })
  function wake() {
    hourly.wake()
    everyMinute.wake()
  }

  await untilMade(app, tables)
  wake()
  const timer = setInterval(wake, minuteMs)
  return {
    async stop() {
      stopped = true
      clearInterval(timer)
      await Promise.all([hourly.idle(), everyMinute.idle()])
    },
  }
}

/** What every data service has to sweep. */
const ofAll = (): Sweep[] => [sweepHandledEvents, sweepFailures, forgetHandled, sweepKeys]

/** Runs the work when woken, unless it runs. */
function inOneRun({ log }: App, work: () => Promise<void>) {
  let running: Promise<void> | undefined
  return {
    wake() {
      running ??= work()
        .catch((err: unknown) => log.warn({ err }, 'housekeeping'))
        .finally(() => {
          running = undefined
        })
    },
    idle: () => running,
  }
}

/**
 * Waits for the database, and for another instance that is at it: writers must find partitions. Those of later days, and the old ones,
 * have time: whoever holds their tables for hours, as a backup does, keeps nobody from starting.
 */
async function untilMade(app: App, tables: Partitions[]) {
  const makeAll = async () => {
    for (const table of tables) {
      await guarded(app, table.table, () => makePartitions(app.sql, table, 0), isDatabaseAway)
    }
  }
  for (let attempt = 0; ; attempt++) {
    try {
      if (await alone(app, 'partitions', makeAll)) return
    } catch (err) {
      if (!isDatabaseAway(err)) throw err
      if (attempt % 20 === 0) app.log.warn({ err }, 'housekeeping')
    }
    await sleep(250)
  }
}

async function keepAll(app: App, tables: Partitions[]) {
  for (const table of tables) await guarded(app, table.table, () => keepPartitions(app.sql, table))
}

/**
 * Does the work unless another instance is at it, which is answered by false. The lock is a session's: the work is many
 * transactions. Sweeps may take hours, with rests; whoever starts waits for partitions alone.
 */
async function alone({ sql, name }: App, work: 'partitions' | 'sweeps' | 'minutely sweeps', run: () => Promise<void>) {
  const session = ownSession(sql)
  try {
    const locking = () => session<{ mine: boolean }[]>`
      select pg_try_advisory_lock(hashtext(${`housekeeping ${name} ${work}`})) as mine
    `
    const [lock] = await makingRoom(sql, locking)
    if (!lock?.mine) return false
    await run()
    return true
  } finally {
    // And with it the lock.
    await session.end({ timeout: 1 })
  }
}

/**
 * One table's trouble, such as a lock that somebody holds or too many rows for one statement, does not keep the others from being kept;
 * a database that is away does.
 */
async function guarded({ log }: App, what: string, work: () => Promise<void>, endsAll = isAwayFromAll) {
  try {
    await work()
  } catch (err) {
    if (endsAll(err)) throw err
    log.error({ err, what }, 'housekeeping')
  }
}

/** Forgets events a day after the outbox, whose oldest are of five days: what is published again is known. 5,000 at a time. */
async function sweepHandledEvents(sql: Sql) {
  const { count } = await sql`
    delete from handled_events where (consumer, event_id) in (
      select consumer, event_id from handled_events where handled_at < now() - interval '6 days' limit 5000
    )
  `
  return count
}

/**
 * What failed for a while, and was handled then, does not keep its event for ever; what is dead waits for the operator, be it
 * since just now: Postgres does not ask anew what the rows were chosen by.
 */
async function sweepFailures(sql: Sql) {
  const isOver = sql`not dead and updated_at < now() - interval '6 days'`
  const { count } = await sql`
    delete from dead_events where (consumer, event_id) in (
      select consumer, event_id from dead_events where ${isOver} limit 5000
    ) and ${isOver}
  `
  return count
}
