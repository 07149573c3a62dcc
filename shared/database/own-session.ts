import postgres, { type Options, type PostgresType } from 'postgres'
import type { Sql } from './database.ts'

/**
 * A session of its own beside the pool, with the same settings: statements leave in the order in which they are made, also
 * before the ones before are answered, `begin` and `commit` among them. It is opened by the first of them, and anew when it
 * was lost; then a transaction that was begun is gone, and what is asked next runs outside of it.
 */
export function ownSession(sql: Sql, settings: Record<string, string> = {}): Sql {
  const { options } = sql
  return postgres({
    ...options,
    max: 1,
    max_lifetime: null,
    // The pool's types are enough, and nobody awaits that query of the driver.
    fetch_types: false,
    connection: { ...options.connection, ...settings },
  } as unknown as Options<Record<string, PostgresType>>)
}
