import type { Fragment, Sql, TransactionSql } from './database.ts'

/**
 * `limit`, written into the statement: of few different numbers, since each makes a statement of its own. Of a limit that is a
 * parameter Postgres expects a tenth of all rows. So a plan made for one call always looks cheaper than the one that it could
 * keep, and it plans at every call (decision 0026).
 */
export const limitTo = (sql: Sql | TransactionSql, rows: number): Fragment => sql.unsafe(`limit ${Math.trunc(rows)}`)
