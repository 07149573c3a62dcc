import type { Sql, TransactionSql } from './database.ts'

/** A moment of this process (performance.now) by the database's clock, with which a host's own need not agree; never too late. */
export async function momentOf(sql: Sql | TransactionSql, at: number): Promise<Date> {
  const [row] = await sql<[{ now: Date }]>`select clock_timestamp() as now`
  return new Date(row.now.getTime() - (performance.now() - at))
}
