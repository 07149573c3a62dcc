import type { Fragment, Sql, TransactionSql } from './database.ts'

/** Neither JSON nor base64 holds a raw control character. */
const separator = '\x1e'

/**
 * An array of texts in JSON or base64; what is undefined is null. As strings of a JSON text they would be escaped here, and read there
 * sign by sign, twice: twice as dear. In a `select`, as the array of `each`, so that its plan is kept. Throws for any other text
 * that holds the sign which stands between them, for then each would be taken for its neighbour.
 */
export function texts(sql: Sql | TransactionSql, all: (string | undefined)[]): Fragment {
  const joined = all.map((text = '') => {
    if (text.includes(separator)) throw new Error('a text holds U+001E, which stands between texts')
    return text
  })
  return sql`(select string_to_array(${joined.join(separator)}, chr(30), ''))`
}
