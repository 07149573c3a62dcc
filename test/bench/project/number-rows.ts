import type { TransactionSql } from 'postgres'
import { countCharacters, dayMs, timeCharacters } from './ulid-sql.ts'

/**
 * A table `filled` for this transaction: rows counted from 1, the newest, evenly over the last days, with the time of each
 * and the characters of its id.
 */
export const numberRows = (tx: TransactionSql, count: number, days: number) => tx`
  create temporary table filled on commit drop as
  select n, to_timestamp(ms / 1000.0) as at,
    ${tx.unsafe(timeCharacters('ms'))} || ${tx.unsafe(countCharacters(`${count} - n`))} as characters
  from (
    select n, ${Date.now()}::bigint - (n * ${(days * dayMs) / count}::float8)::bigint as ms from generate_series(1, ${count}::int) n
  ) times
`
