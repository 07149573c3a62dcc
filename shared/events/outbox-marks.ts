import type { Sql, TransactionSql } from '../database/database.ts'

/** How old a mark is when all events up to it are committed, or never will be: longer than any transaction takes. */
const dueAfter = '150 s'

/** Of a row of `outbox_marks`. */
export const isDue = (sql: Sql | TransactionSql) => sql`at < now() - ${dueAfter}::interval`

/** The `seq` of the newest recorded event; 0: there is none. */
export const newestOf = (sql: Sql | TransactionSql) =>
  sql`(select case when is_called then last_value else 0 end from outbox_seq)`

/** Marks what is recorded by now. Of the earlier marks it keeps those that are not due yet, and the latest one that is. */
export async function markRecorded(sql: Sql): Promise<void> {
  await sql`insert into outbox_marks (seq) values (${newestOf(sql)}) on conflict do nothing`
  await sql`delete from outbox_marks where seq < (select max(seq) from outbox_marks where ${isDue(sql)})`
}
