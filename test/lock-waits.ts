import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** Until a session of this database waits for a lock that another one holds. */
export async function untilSomebodyWaits(sql: Sql | TransactionSql): Promise<void> {
  const waiting = await sql`
    select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
  `
  if (waiting.length === 0) await untilSomebodyWaits(sql)
}
