import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isDatabaseAway, isLoginRefused, type Sql } from './database.ts'
import type { Service } from '../service/service.ts'

/** Every 5 s. */
const saidEvery = 20
const againMs = 250

/**
 * Migrations run apart from the services, file by file: one that starts meanwhile, or before, waits until all are there that
 * it knows. Those of a later release are none of its business.
 */
export async function waitForMigrations(sql: Sql, { log, name }: Pick<Service, 'log' | 'name'>): Promise<void> {
  const known = [
    ...migrationsIn('kit', import.meta.dirname, '../migrations'),
    ...migrationsIn('idempotency', import.meta.dirname, '../migrations-idempotency'),
    ...migrationsIn(name, import.meta.dirname, '../../services', name, 'migrations'),
  ]
  for (let attempt = 0; ; attempt++) {
    const isSaid = attempt % saidEvery === 0
    try {
      await refuseLostSettings(sql, name)
      const missing = await missingOf(sql, name, known)
      if (missing.length === 0) return
      if (isSaid) log.warn({ missing: missing.length, next: missing[0] }, 'waiting for the migrations')
    } catch (err) {
      if (isSaid) log[isDatabaseAway(err) && !isLoginRefused(err) ? 'warn' : 'error']({ err }, 'waiting for postgres')
    }
    await new Promise((resolve) => setTimeout(resolve, againMs))
  }
}

/** A pooler that drops what a login asks for: names would mean other tables, or none, and no statement would ever end. */
async function refuseLostSettings(sql: Sql, schema: string) {
  const [row] = await sql<{ path: string; limit: string }[]>`
    select current_setting('search_path') as path, current_setting('statement_timeout') as limit
  `
  if (row?.path === schema && row.limit !== '0') return
  throw new Error(
    `The session has the search_path ${row?.path} and the statement_timeout ${row?.limit}, not those of its login: DATABASE_URL ` +
      'must lead to Postgres itself, not to a pooler that ignores settings.',
  )
}

/** As `deploy/migrate.ts` names them. */
const migrationsIn = (source: string, ...path: string[]) =>
  readdirSync(join(...path))
    .filter((file) => file.endsWith('.sql'))
    .toSorted()
    .map((file) => `${source}/${file}`)

/** Where nothing was ever migrated, or by a release that let nobody look, all are missing. */
async function missingOf(sql: Sql, schema: string, known: string[]): Promise<string[]> {
  const [table] = await sql<{ isOpen: boolean | null }[]>`
    select has_table_privilege(to_regclass('public.migrations'), 'select') as is_open
  `
  if (!table?.isOpen) return known
  const rows = await sql<{ name: string }[]>`
    select name from public.migrations where schema in (${schema}, 'idempotency') and name = any(${known})
  `
  const applied = new Set(rows.map((row) => row.name))
  return known.filter((file) => !applied.has(file))
}
