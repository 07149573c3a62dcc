import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keepPartitions } from '@app/shared/database/partitions.ts'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrate } from './migrate.ts'
import { type Servers, startServers } from './servers/start-servers.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'wide-columns-'))
let servers: Servers
beforeAll(async () => {
  servers = await startServers({ dataDir, log: () => {}, only: ['postgres'], temporary: true, isDurable: false })
  await migrate(servers.postgresUrl)
}, 60_000)
afterAll(async () => {
  await servers.stop()
  rmSync(dataDir, { recursive: true })
})

test('ANALYZE reads no document and no bytes, of today’s partitions either: nothing is looked up by them', async () => {
  const sql = postgres(servers.postgresUrl, { max: 1, onnotice: () => {}, connection: { search_path: 'webhooks' } })
  await keepPartitions(sql, { table: 'outbox', by: 'time', keepDays: 1 })
  const columns = await sql<{ name: string; target: number | null }[]>`
    select format('%s.%s', attrelid::regclass, attname) as name, attstattarget as target
    from pg_attribute join pg_class c on c.oid = attrelid join pg_namespace n on n.oid = relnamespace
    where nspname in ('messaging', 'directory', 'platform', 'webhooks', 'idempotency') and relkind in ('r', 'p')
      and attnum > 0 and not attisdropped and atttypid in ('jsonb'::regtype, 'json'::regtype, 'bytea'::regtype)
  `
  await sql.end()
  expect(columns.filter(({ name }) => /^outbox_\d+\.payload$/.test(name)).length).toBeGreaterThan(0)
  expect(columns.filter(({ target }) => target !== 0)).toEqual([])
})
