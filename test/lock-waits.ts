import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** To look takes about a millisecond of the processor. */
const lookAgainMs = 10

/** Sessions of this database that wait for a lock that another one holds. */
export const lockWaits = (sql: Sql | TransactionSql) => sql`
  select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
`

async function untilAsMany(look: () => PromiseLike<unknown[]>, sessions: number) {
  while ((await look()).length < sessions) await sleep(lookAgainMs)
}

/** Until a session of this database, or as many, waits for a lock that another one holds. */
export async function untilSomebodyWaits(sql: Sql | TransactionSql, sessions = 1): Promise<void> {
  await untilAsMany(() => lockWaits(sql), sessions)
}

/** Until a session of this database waits for this transaction. */
export async function untilWaitedFor(sql: Sql, tx: TransactionSql): Promise<void> {
  const [own] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
  const waiting = () => sql`select from pg_stat_activity where ${own?.pid ?? 0} = any(pg_blocking_pids(pid))`
  await untilAsMany(waiting, 1)
}
