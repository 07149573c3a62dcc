import type { Sql, TransactionSql } from './database.ts'

/**
 * The elements of an array as rows, of which Postgres expects ten however many there are. Told how many, it finds a plan for so
 * many cheaper than the one that it keeps for any number, and makes a new one each time (measured: 390 µs for a plan of 30 µs).
 */
export const each = (sql: Sql | TransactionSql, texts: string[]) => sql`unnest((select ${texts}::text[]))`
