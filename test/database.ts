import { randomBytes } from 'node:crypto'
import type { DataServiceName } from '@app/deploy/migration-files.ts'
import { urlOfService } from '@app/deploy/roles.ts'
import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import postgres from 'postgres'
import { inject } from 'vitest'

export interface TestDatabase {
  /** Logs in as the service's role. */
  url: string
  /** The same as the service opens it. */
  sql: Sql
  /** As who migrates. */
  admin: Sql
  /** Ends `sql` and whoever else is connected. */
  drop: () => Promise<void>
}

/** A service's own is for small statements on a machine of its own; the driver waits for no answer longer than 15 s. */
const statementTimeout = '14s'

/** An empty, migrated database, in which one service is at home. */
export async function createTestDatabase(service: DataServiceName): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await copyTemplate(name)
  const admin = new URL(inject('postgresUrl'))
  admin.pathname = `/${name}`
  const url = `${urlOfService(admin.href, service, inject('passwords')[service])}?statement_timeout=${statementTimeout}`
  const sql = openDatabase(url, service)
  const owner = postgres(admin.href, { max: 1, onnotice: () => {} })
  return {
    url,
    sql,
    admin: owner,
    async drop() {
      await Promise.all([sql.end({ timeout: 1 }), owner.end({ timeout: 1 })])
      const server = asAdmin()
      await server`drop database if exists ${server(name)} with (force)`
    },
  }
}

/** File by file: page by page through the log costs five times as much. Postgres 14 knows no other way, and no word for it. */
async function copyTemplate(name: string) {
  const sql = asAdmin()
  const [server] = await sql<[{ major: number }]>`select current_setting('server_version_num')::int / 10000 as major`
  const strategy = server.major < 15 ? sql`` : sql`strategy file_copy`
  await sql`create database ${sql(name)} template ${sql(inject('template'))} ${strategy}`
}

let administration: Sql | undefined

/** One connection for all files of a worker: to open one costs as much as forty statements. */
function asAdmin(): Sql {
  administration ??= postgres(inject('postgresUrl'), { max: 1, fetch_types: false, onnotice: () => {} })
  return administration
}
