import { randomUUID } from 'node:crypto'
import { recordCallBatch as contract } from '@app/shared/contracts/platform.ts'
import { startHousekeeping } from '@app/shared/database/housekeeping.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, startTestApp, type TestApp } from '../testing/app.ts'
import { explainRequest } from '../explain/explain-request.ts'
import { recordApiCalls } from './record-api-calls.ts'
import { apiLog, recordCallBatch, sweepBatches } from './record-call-batch.ts'

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
  status: '200',
  duration_ms: '1.5',
  ip: '127.0.0.1',
  problem: '',
})

type Call = ReturnType<typeof callAt>

/** The calls as a batch of that name. */
function batchOf(calls: Call[], batch: string = randomUUID()) {
  const lines = (column: keyof Call) => calls.map((one) => one[column]).join('\n')
  const columns = Object.keys(callAt('')) as (keyof Call)[]
  return { batch, ...(Object.fromEntries(columns.map((column) => [column, lines(column)])) as Call) }
}

const logged = (requestIds: string[]) => it.app.sql`
  select at, organization_id, key_id, request_id, method, path, status, duration_ms, ip, tableoid::regclass::text as place
  from api_log where request_id = any(${requestIds}) order by request_id
`

test('keeps every call of a batch, with and without a key, in the partition of its day', async () => {
  const now = new Date()
  const first = callAt(now.toISOString())
  // One of its columns differs from all others' in each row, so that no two can be mixed up.
  const second = { ...callAt(now.toISOString()), organization_id: '', key_id: '', status: '401', path: '/v1/a,{"}\\' }
  const third = { ...callAt(now.toISOString()), duration_ms: '12.25', method: 'POST', ip: '' }
  expect(await ask(it.app, recordCallBatch, batchOf([first, second, third]))).toEqual({ recorded: 3 })
  const place = `api_log_${now.toISOString().slice(0, 10).replaceAll('-', '')}`
  expect([...(await logged([first, second, third].map((one) => one.request_id)))]).toEqual(
    [first, second, third].map((call) => ({
      at: now,
      organizationId: call.organization_id || null,
      keyId: call.key_id || null,
      requestId: call.request_id,
      method: call.method,
      path: call.path,
      status: Number(call.status),
      durationMs: Number(call.duration_ms),
      ip: call.ip,
      place,
    })),
  )
})

test('a call without a key and without an address may be alone in its batch', async () => {
  const call = { ...callAt(new Date().toISOString()), organization_id: '', key_id: '', ip: '' }
  expect(await ask(it.app, recordCallBatch, batchOf([call]))).toEqual({ recorded: 1 })
  expect(await logged([call.request_id])).toMatchObject([{ organizationId: null, keyId: null, ip: '' }])
})

test('a batch that comes again is recorded once, also while it is being recorded', async () => {
  const batch = batchOf([callAt(new Date().toISOString()), callAt(new Date().toISOString())])
  const times = await Promise.all([1, 2, 3].map(() => ask(it.app, recordCallBatch, batch)))
  expect(times.map(({ recorded }) => recorded).toSorted((a, b) => a - b)).toEqual([0, 0, 2])
  expect(await ask(it.app, recordCallBatch, batch)).toEqual({ recorded: 0 })
  expect(await logged(batch.request_id.split('\n'))).toHaveLength(2)
})

test('a batch that cannot be recorded leaves nothing, so that its repetition is recorded', async () => {
  const call = callAt(new Date().toISOString())
  const name = randomUUID()
  await expect(ask(it.app, recordCallBatch, batchOf([{ ...call, status: 'none' }], name))).rejects.toThrow('integer')
  expect(await ask(it.app, recordCallBatch, batchOf([call], name))).toEqual({ recorded: 1 })
})

test('the names of batches are forgotten after a day', async () => {
  const [old, young] = [randomUUID(), randomUUID()]
  for (const name of [old, young]) await ask(it.app, recordCallBatch, batchOf([callAt(new Date().toISOString())], name))
  await it.app.sql`update api_log_batches set recorded_at = now() - interval '25 hours' where id = ${old}`
  expect(await sweepBatches(it.app.sql)).toBe(1)
  const left = await it.app.sql`select id from api_log_batches where id in (${old}, ${young})`
  expect([...left]).toEqual([{ id: young }])
})

test('a gateway with a wrong clock does not fill days that have no partition', async () => {
  const calls = [callAt('2001-01-01T00:00:00.000Z'), callAt('2999-01-01T00:00:00.000Z')]
  await ask(it.app, recordCallBatch, batchOf(calls))
  const rows = await logged(calls.map(({ request_id }) => request_id))
  expect(rows).toHaveLength(2)
  for (const row of rows) expect(row['place']).toMatch(/^api_log_\d{8}$/)
})

test('a call is found by its request id among many', async () => {
  const calls = Array.from({ length: 2_000 }, () => callAt(new Date().toISOString()))
  const refused = { ...callAt(new Date().toISOString()), status: '400', problem: 'invalid_field_value to' }
  calls.push(refused)
  await ask(it.app, recordCallBatch, batchOf(calls))
  const { request_id: id = '', key_id: keyId } = calls[1_234] ?? {}
  const { history } = await ask(it.app, explainRequest, { id })
  expect(history).toMatchObject([{ what: 'GET /v1/me: 200', details: { key_id: keyId, duration_ms: 1.5 } }])
  const { history: why } = await ask(it.app, explainRequest, { id: refused.request_id })
  expect(why).toMatchObject([{ what: 'GET /v1/me: 400, invalid_field_value to' }])
  const lost = ['path', 'id'].map((what) => ({
    ...callAt(new Date().toISOString()),
    status: '404',
    problem: `resource_not_found ${what}`,
  }))
  await ask(it.app, recordCallBatch, batchOf(lost))
  const whys = await Promise.all(lost.map(({ request_id }) => ask(it.app, explainRequest, { id: request_id })))
  expect(whys.map(({ history: [moment] }) => moment?.what)).toEqual([
    'GET /v1/me: 404, resource_not_found: no endpoint has this path and method',
    expect.stringMatching(
      /^GET \/v1\/me: 404, resource_not_found: the endpoint is there, and what the path names is not/,
    ),
  ])
  await expect(ask(it.app, explainRequest, { id: newId('req') })).rejects.toThrow('No such resource')
})

test('gateways of the versions before are understood', async () => {
  const early = callAt(new Date().toISOString())
  const { problem: _none, ...columns } = batchOf([early])
  expect(await ask(it.app, recordCallBatch, contract.body.parse(columns))).toEqual({ recorded: 1 })
  expect(await logged([early.request_id])).toMatchObject([{ status: 200 }])
  const now = new Date()
  const call = { ...callAt(now.toISOString()), status: 200, duration_ms: 1.5 }
  expect(await ask(it.app, recordApiCalls, { calls: [call] })).toEqual({ recorded: 1 })
  expect(await logged([call.request_id])).toMatchObject([{ at: now, status: 200, durationMs: 1.5, path: '/v1/me' }])
})
