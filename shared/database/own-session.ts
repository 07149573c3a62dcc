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

/**
 * Does what needs a session of its own. Where the server has no room for that, a session of the pool that rests ends, so that the
 * next try finds some: those would stay for an hour, and what is done in no other session would wait for as long. The pool keeps one.
 */
export async function makingRoom<T>(pool: Sql, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (err) {
    if (isTooMany(err)) await endOneOf(pool)
    throw err
  }
}

const isTooMany = (err: unknown) => err instanceof postgres.PostgresError && err.code === '53300'

/** It ends itself, which is the answer that fails: nobody else's statement is in it. There is none where the pool has one session alone. */
const endOneOf = (pool: Sql) =>
  pool
    .begin(async (kept) => {
      await kept`select`
      await pool.begin((spare) => spare`select pg_terminate_backend(pg_backend_pid())`)
    })
    .catch(() => {})
