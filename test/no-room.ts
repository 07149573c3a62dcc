import type { Sql } from '@app/shared/database/database.ts'
import postgres from 'postgres'
import { inject } from 'vitest'

/** That many sessions of the pool rest, and its database takes no other one beside those that are there; answers how to end that. */
export async function leaveNoRoom(pool: Sql, resting: number): Promise<() => Promise<void>> {
  const all = Promise.withResolvers<void>()
  let there = 0
  const holdOne = () =>
    pool.begin(async (tx) => {
      await tx`select`
      if (++there === resting) all.resolve()
      await all.promise
    })
  await Promise.all(Array.from({ length: resting }, holdOne))
  const [found] = await pool<[{ name: string; sessions: number }]>`
    select current_database() as name, count(*)::int as sessions from pg_stat_activity where datname = current_database()
  `
  await limitTo(found.name, found.sessions)
  return () => limitTo(found.name, -1)
}

async function limitTo(database: string, sessions: number) {
  const server = postgres(inject('postgresUrl'), { max: 1, fetch_types: false })
  await server`alter database ${server(database)} connection limit ${server.unsafe(String(sessions))}`
  await server.end()
}
