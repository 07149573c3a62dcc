import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import postgres, { type Sql } from 'postgres'
import { databaseUrl, isDatabaseAway, isLockTimeout, ofPrimary } from '@app/shared/database/database.ts'
import { longestMs, sessionSettings } from '@app/shared/database/session-settings.ts'
import { runCommand, sentenceOf } from './command.ts'
import { refuseWords } from './command-line.ts'
import { dataServices, readMigrations } from './migration-files.ts'
import { type Applied, planMigrations, type Step } from './migration-plan.ts'
import { ensureRoles, grantAccess, grantIdempotency, type Passwords, roleOf } from './roles.ts'

const repository = fileURLToPath(new URL('..', import.meta.url))
/** Any number that nothing else on the server uses. */
const lockKey = 7_203_911_845
/**
 * Whoever wants the same table waits behind a lock that is waited for, and a backup may hold the table for hours: so a
 * migration waits for less than a service does (shared/database/database.ts), and comes again.
 */
const lockWithinMs = 500
const againMs = 2_000
const patienceMs = 600_000

/** No table is too large for its migration, and no other migration takes too long to be waited for. */
const patient = {
  statement_timeout: longestMs,
  lock_timeout: longestMs,
  idle_in_transaction_session_timeout: longestMs,
}

export interface MigrateOptions {
  /** By service; the role of one without a password keeps the one it has. */
  passwords?: Passwords
  /** Where the migrations are: the repository, unless told otherwise. */
  root?: string
}

/**
 * Brings a database up to date: a role and a schema for each service, the kit's tables and the service's own in it, and
 * the shared schema `idempotency`. Each file in a transaction, one migration at a time over all processes. Answers the
 * names of the files that it applied. Needs a superuser, or a user with CREATEROLE who owns the database.
 */
export async function migrate(
  adminUrl: string,
  { passwords = {}, root = repository }: MigrateOptions = {},
): Promise<string[]> {
  const all = readMigrations(root)
  // One connection, since the lock is the session's. The driver would ask for the types without awaiting the answer.
  const sql = postgres(adminUrl, {
    ...ofPrimary(adminUrl),
    max: 1,
    max_lifetime: null,
    fetch_types: false,
    connection: { ...sessionSettings, ...patient },
    onnotice: () => {},
  })
  try {
    await refuseEncoding(sql)
    await sql`select pg_advisory_lock(${lockKey}::bigint)`
    const applied = await readApplied(sql)
    await ensureRoles(sql, passwords)
    const steps = planMigrations(all, applied)
    for (const step of steps) await apply(sql, step)
    await grantIdempotency(sql)
    await grantAccess(sql)
    return steps.map(({ schema, migration }) => `${schema}: ${migration.name}`)
  } catch (err) {
    throw explained(err)
  } finally {
    await sql.end({ timeout: 5 })
  }
}

const rightsNeeded = 'the user of DATABASE_URL must be a superuser, or have CREATEROLE and own the database.'

/** Nothing was answered, so that it may be the URL's fault. */
const isOutOfReach = (err: unknown) => isDatabaseAway(err) && !(err instanceof postgres.PostgresError)

const mayTooLittle = (err: unknown) => err instanceof postgres.PostgresError && err.code === '42501'

function explained(err: unknown) {
  if (mayTooLittle(err)) return new Error(`${sentenceOf(err)}: ${rightsNeeded}`, { cause: err })
  if (isOutOfReach(err))
    return new Error(`The server of DATABASE_URL is out of reach: ${sentenceOf(err)}`, { cause: err })
  return err
}

/** Each emoji would be an error, long after the first message. */
async function refuseEncoding(sql: Sql) {
  const [row] = await sql<{ name: string; encoding: string }[]>`
    select current_database() as name, current_setting('server_encoding') as encoding
  `
  if (row && row.encoding !== 'UTF8') {
    throw new Error(
      `The database ${row.name} has the encoding ${row.encoding}, and messages need UTF8: ` +
        "create database … encoding 'UTF8' template template0",
    )
  }
}

async function readApplied(sql: Sql) {
  await sql`
    create table if not exists public.migrations (
      schema text not null,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default now(),
      primary key (schema, name)
    )
  `
  return sql<Applied[]>`select schema, name, checksum from public.migrations`.catch((err: unknown) => {
    throw hasNoSuchColumn(err) ? new Error(notOurs, { cause: err }) : err
  })
}

/** Many programs give their own table this name. */
const notOurs =
  'The table public.migrations of the database belongs to another program: create a database for this one alone.'

const hasNoSuchColumn = (err: unknown) => err instanceof postgres.PostgresError && err.code === '42703'

async function apply(sql: Sql, step: Step) {
  const endsAt = performance.now() + patienceMs
  for (;;) {
    try {
      return await applyOnce(sql, step)
    } catch (err) {
      if (isLockTimeout(err) && performance.now() < endsAt) {
        await sleep(againMs)
        continue
      }
      const { schema, migration } = step
      throw new Error(`The migration ${migration.name} failed in the schema ${schema}: ${sentenceOf(err)}`, {
        cause: err,
      })
    }
  }
}

async function applyOnce(sql: Sql, { schema, migration }: Step) {
  const role = dataServices.find((service) => service === schema)
  await sql.begin(async (tx) => {
    await tx.unsafe(`set local lock_timeout = ${lockWithinMs}`)
    if (role) await tx.unsafe(`set local role ${roleOf(role)}`)
    await tx.unsafe(`set local search_path = ${schema}`)
    await tx.unsafe(migration.sql)
    await tx.unsafe('reset role')
    await tx`
      insert into public.migrations (schema, name, checksum)
      values (${schema}, ${migration.name}, ${migration.checksum})
    `
  })
}

async function main() {
  refuseWords(process.argv.slice(2))
  const { DATABASE_URL: url } = process.env
  if (!url) throw new Error('DATABASE_URL is not set: the address of the database, as a user who may create roles.')
  const { error } = databaseUrl.safeParse(url)
  if (error) throw new Error(`DATABASE_URL ${error.issues[0]?.message}`)
  const given = dataServices.flatMap((service) => {
    const password = process.env[`${service.toUpperCase()}_PASSWORD`]
    return password ? [[service, password] as const] : []
  })
  const applied = await migrate(url, { passwords: Object.fromEntries(given) })
  console.log([...applied, `${applied.length} migrations applied`].join('\n'))
}

if (import.meta.main) await runCommand(main)
