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

/** An empty, migrated database, in which one service is at home. */
export async function createTestDatabase(service: DataServiceName): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await asAdmin((sql) => sql`create database ${sql(name)} template ${sql(inject('template'))}`)
  const admin = new URL(inject('postgresUrl'))
  admin.pathname = `/${name}`
  const url = urlOfService(admin.href, service, inject('passwords')[service])
  const sql = openDatabase(url, service)
  const owner = postgres(admin.href, { max: 1, onnotice: () => {} })
  return {
    url,
    sql,
    admin: owner,
    async drop() {
      await Promise.all([sql.end({ timeout: 1 }), owner.end({ timeout: 1 })])
      await asAdmin((admin) => admin`drop database if exists ${admin(name)} with (force)`)
    },
  }
}

async function asAdmin(run: (sql: Sql) => Promise<unknown>) {
  const sql = postgres(inject('postgresUrl'), { max: 1, onnotice: () => {} })
  try {
    await run(sql)
  } finally {
    await sql.end()
  }
}
