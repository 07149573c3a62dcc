import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** To look takes about a millisecond of the processor. */
const lookAgainMs = 10

/** Sessions of this database that wait for a lock that another one holds. */
export const lockWaits = (sql: Sql | TransactionSql) => sql`
  select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
`

/** Until a session of this database, or as many, waits for a lock that another one holds. */
export async function untilSomebodyWaits(sql: Sql | TransactionSql, sessions = 1): Promise<void> {
  while ((await lockWaits(sql)).length < sessions) await sleep(lookAgainMs)
}

/** Until a session of this database waits for this transaction. */
export async function untilWaitedFor(sql: Sql, tx: TransactionSql): Promise<void> {
  const [own] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
  const waiting = () => sql`select from pg_stat_activity where ${own?.pid ?? 0} = any(pg_blocking_pids(pid))`
  while ((await waiting()).length === 0) await sleep(lookAgainMs)
}
