import type { Sql } from '@app/shared/database/database.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import postgres from 'postgres'
import { inject, onTestFinished } from 'vitest'

/** A session of a service with its database, to which that says other times than to all other sessions: as if all hosts had another clock. */
export async function sessionWithClock(sql: Sql, byMs: number): Promise<Sql> {
  const [own] = await sql<[{ database: string; path: string }]>`
    select current_database() as database, current_setting('search_path') as path
  `
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${own.database}`
  const admin = postgres(url.href, { max: 1, onnotice: () => {} })
  await admin.unsafe(`create schema wrong_clock; grant usage on schema wrong_clock to public`)
  for (const name of ['now', 'clock_timestamp'])
    await admin.unsafe(`
      create function wrong_clock.${name}() returns timestamptz stable
      return pg_catalog.${name}() + ${byMs} * interval '1 ms'
    `)
  const session = ownSession(sql, { search_path: `wrong_clock, pg_catalog, ${own.path}` })
  onTestFinished(async () => {
    await session.end({ timeout: 1 })
    await admin.unsafe('drop schema wrong_clock cascade')
    await admin.end()
  })
  return session
}
