import type { Sql } from 'postgres'
import { type DataServiceName, dataServices } from './migration-files.ts'
import { verifierOf } from './password-verifier.ts'

/** The role that a service logs in as. */
export const roleOf = (service: DataServiceName): string => `svc_${service}`

export type Passwords = Partial<Record<DataServiceName, string>>

/** The address at which a service logs in to the database of the given one, which may name several servers: no `URL` holds those. */
export function urlOfService(adminUrl: string, service: DataServiceName, password: string): string {
  return adminUrl.replace(/\/\/(?:[^/?]*@)?/, () => `//${roleOf(service)}:${encodeURIComponent(password)}@`)
}

/** One role and one schema a service, owned by it alone. A password that is not given stays as it is. */
export async function ensureRoles(sql: Sql, passwords: Passwords): Promise<void> {
  for (const service of dataServices) await ensureRole(sql, service, passwords[service])
  for (const service of dataServices) await refuseOwner(sql, service)
  await sql.unsafe('create schema if not exists idempotency')
  await closePublicSchema(sql)
}

async function ensureRole(sql: Sql, service: DataServiceName, password: string | undefined) {
  const role = roleOf(service)
  await onWholeServer(async () => {
    const [found] = await sql`select from pg_roles where rolname = ${role}`
    if (!found) await sql.unsafe(`create role ${role}`)
    // The statement takes no parameters; a verifier has nothing that were to be quoted.
    if (password !== undefined) await sql.unsafe(`alter role ${role} login password '${verifierOf(password)}'`)
    await joinRole(sql, role)
  })
  await sql.unsafe(`create schema if not exists ${service} authorization ${role}`)
}

/** A dump has no roles. Restored where they were not, all is there, and no service may touch it. */
async function refuseOwner(sql: Sql, service: DataServiceName) {
  const [row] = await sql<{ owner: string }[]>`
    select pg_get_userbyid(nspowner) as owner from pg_namespace where nspname = ${service}
  `
  if (row === undefined || row.owner === roleOf(service)) return
  throw new Error(
    `The schema ${service} belongs to ${row.owner}, not to ${roleOf(service)}, as after a dump that was restored where that role ` +
      'was not. It is there now: restore the dump again, into an empty database.',
  )
}

/** Who is no superuser must be a member of a role to make something in its name. */
async function joinRole(sql: Sql, role: string) {
  const [row] = await sql<{ isMember: boolean }[]>`select pg_has_role(current_user, ${role}, 'usage') as "isMember"`
  if (!row?.isMember) await sql.unsafe(`grant ${role} to current_user`)
}

/** Before Postgres 15 everybody could make tables in `public`. Only its owner can change that. */
async function closePublicSchema(sql: Sql) {
  const [row] = await sql<{ isOpen: boolean; isOurs: boolean }[]>`
    select has_schema_privilege('public', n.oid, 'create') as "isOpen", pg_has_role(n.nspowner, 'usage') as "isOurs"
    from pg_namespace n where n.nspname = 'public'
  `
  if (row?.isOpen && row.isOurs) await sql.unsafe('revoke create on schema public from public')
}

/** All service roles may use the tables of the schema `idempotency`, which none of them owns. */
export async function grantIdempotency(sql: Sql): Promise<void> {
  const roles = dataServices.map(roleOf).join(', ')
  await sql.unsafe(`grant usage on schema idempotency to ${roles}`)
  await sql.unsafe(`grant select, insert, update, delete on all tables in schema idempotency to ${roles}`)
}

/**
 * A service logs in, and waits for the migrations that it knows (shared/database/wait-for-migrations.ts). By default everybody may connect to a
 * database and use its schema `public`; where that was taken away, as guides to hardening have it, nobody else gets it.
 */
export async function grantAccess(sql: Sql): Promise<void> {
  const roles = dataServices.map(roleOf).join(', ')
  const [database] = await sql<{ name: string }[]>`select quote_ident(current_database()) as name`
  await sql.unsafe(`grant connect on database ${database?.name} to ${roles}`)
  await sql.unsafe(`grant usage on schema public to ${roles}`)
  await sql.unsafe(`grant select on public.migrations to ${roles}`)
}

/** Roles belong to the whole server: another of its databases may be migrated at the same moment, out of reach of our lock. */
async function onWholeServer(change: () => Promise<void>, attempts = 5): Promise<void> {
  try {
    await change()
  } catch (err) {
    const code = err instanceof Error && 'code' in err ? String(err.code) : ''
    // duplicate_object, unique_violation, and `tuple concurrently updated`, which is an internal error to Postgres.
    if (attempts === 1 || !['42710', '23505', 'XX000'].includes(code)) throw err
    await onWholeServer(change, attempts - 1)
  }
}
