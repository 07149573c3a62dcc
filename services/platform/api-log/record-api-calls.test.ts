import { startHousekeeping } from '@app/shared/housekeeping.ts'
import { newId } from '@app/shared/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, startTestApp, type TestApp } from '../testing/app.ts'
import { apiLog, recordApiCalls } from './record-api-calls.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
  const house = await startHousekeeping(it.app, { partitions: [apiLog] })
  await house.stop()
})
afterAll(() => it.close())

const callAt = (at: string) => ({
  at,
  organization_id: newId('org'),
  key_id: newId('key'),
  request_id: newId('req'),
  method: 'GET',
  path: '/v1/me',
  status: 200,
  duration_ms: 1.5,
  ip: '127.0.0.1',
})

const logged = (requestIds: string[]) => it.app.sql`
  select at, organization_id, key_id, request_id, method, path, status, duration_ms, ip, tableoid::regclass::text as place
  from api_log where request_id = any(${requestIds})
`

test('keeps every call of a batch, with and without a key, in the partition of its day', async () => {
  const now = new Date()
  const first = callAt(now.toISOString())
  const second = { ...callAt(now.toISOString()), organization_id: null, key_id: null, status: 401 }
  expect(await ask(it.app, recordApiCalls, { calls: [first, second] })).toEqual({ recorded: 2 })
  const rows = await logged([first.request_id, second.request_id])
  const place = `api_log_${now.toISOString().slice(0, 10).replaceAll('-', '')}`
  expect(rows).toEqual(
    expect.arrayContaining(
      [first, second].map((call) => ({
        at: now,
        organizationId: call.organization_id,
        keyId: call.key_id,
        requestId: call.request_id,
        method: 'GET',
        path: '/v1/me',
        status: call.status,
        durationMs: 1.5,
        ip: '127.0.0.1',
        place,
      })),
    ),
  )
})

test('a batch that comes again is recorded once', async () => {
  const calls = [callAt(new Date().toISOString()), callAt(new Date().toISOString())]
  await ask(it.app, recordApiCalls, { calls })
  const late = callAt(new Date().toISOString())
  expect(await ask(it.app, recordApiCalls, { calls: [...calls, late] })).toEqual({ recorded: 1 })
})

test('an empty batch records nothing', async () => {
  expect(await ask(it.app, recordApiCalls, { calls: [] })).toEqual({ recorded: 0 })
})

test('a gateway with a wrong clock does not fill days that have no partition', async () => {
  const calls = [callAt('2001-01-01T00:00:00.000Z'), callAt('2999-01-01T00:00:00.000Z')]
  await ask(it.app, recordApiCalls, { calls })
  const rows = await logged(calls.map(({ request_id }) => request_id))
  expect(rows).toHaveLength(2)
  for (const row of rows) expect(row['place']).toMatch(/^api_log_\d{8}$/)
})
