import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { authenticateKey, createKey, createOrganization, getMe, listAccounts } from '@app/shared/contracts/platform.ts'
import { compileCache } from '@app/test/compile-cache.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hashOf } from './keys/keys.ts'

const settings = {
  SEAL_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  CURSOR_KEYS: `k1:${Buffer.alloc(32, 2).toString('base64')}`,
  PUBLIC_URL: 'http://gateway.example:8080',
  UPSTREAM_APP_ID: '1000',
  UPSTREAM_APP_SECRET: 'app-secret',
  UPSTREAM_BASE_URL: 'http://127.0.0.1:1',
}
let beside: TestService
let platform: ChildProcess

beforeAll(async () => {
  beside = await testService('platform')
  platform = run({ ...settings, DATABASE_URL: beside.databaseUrl, NATS_URL: beside.natsUrl })
  await untilServed()
})
afterAll(async () => {
  platform.kill('SIGKILL')
  await beside.close()
})

const run = (env: NodeJS.ProcessEnv) =>
  spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    env: { ...compileCache, LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'inherit', 'pipe'],
  })

async function untilServed(): Promise<void> {
  const body = { key_hash: hashOf('nobody') }
  const state = await call(beside, authenticateKey, { body }, systemCaller()).catch(() => undefined)
  if (state) return
  await beside.sql`select pg_sleep(0.05)`
  await untilServed()
}

test('an administrator makes an organization and a key, and the key asks who it is', async () => {
  const organization = await call(beside, createOrganization, { body: { name: 'Acme' } }, systemCaller())
  const body = { organization_id: organization.id, label: 'production' }
  const key = await call(beside, createKey, { body }, systemCaller())
  const caller = { ...systemCaller(organization.id), keyId: key.id }
  const me = await call(beside, getMe, {}, caller)
  expect(me).toMatchObject({ organization: { name: 'Acme' }, api_key: { last4: key.key.slice(-4) } })
  expect(await call(beside, listAccounts, {}, caller)).toMatchObject({ data: [], has_more: false })
})

test('the partitions of the API log and of the outbox are there before it serves', async () => {
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '')
  const [row] = await beside.sql<{ there: boolean }[]>`
    select to_regclass(${`api_calls_${day}`}) is not null and to_regclass(${`outbox_${day}`}) is not null as there
  `
  expect(row?.there).toBe(true)
})

test('a wrong environment ends it with a list of what is wrong', async () => {
  const child = run({ ...settings, NATS_URL: beside.natsUrl, RATE_TIERS: '{"pro":1}' })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  expect(await once(child, 'close')).toEqual([78, null])
  expect(said).toContain('DATABASE_URL')
  expect(said).toContain('RATE_TIERS')
})

test('SIGTERM stops it in order', async () => {
  const exited = once(platform, 'exit')
  platform.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})
