import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** How many rows of these tables the transaction has read so far, of whole tables and by index. */
export async function rowsRead(tx: Sql | TransactionSql, tables: string[]): Promise<number> {
  const [read] = await tx<{ rows: number }[]>`
    select sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::int as rows from pg_stat_xact_user_tables
    where relname = any(${tables}::text[])
  `
  return read?.rows ?? NaN
}

/** How many pages of the indexes with such names (a regular expression) the transaction has looked at so far: also where no row was fetched. */
export async function pagesRead(tx: Sql | TransactionSql, indexes: string): Promise<number> {
  const [read] = await tx<{ pages: number }[]>`
    select sum(pg_stat_get_xact_blocks_fetched(oid))::int as pages from pg_class where relname ~ ${indexes} and relkind = 'i'
  `
  return read?.pages ?? NaN
}
