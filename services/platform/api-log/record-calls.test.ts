import { randomUUID } from 'node:crypto'
import { recordCallBatch as batchContract } from '@app/shared/contracts/platform.ts'
import { startHousekeeping } from '@app/shared/database/housekeeping.ts'
import { keepPartitions } from '@app/shared/database/partitions.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, startTestApp, type TestApp } from '../testing/app.ts'
import { explainRequest } from '../explain/explain-request.ts'
import { recordApiCalls, recordCallBatch } from './earlier-gateways.ts'
import { apiLog } from './earlier-rows.ts'
import { callOfRequest, countCallsSince, lastCallSince } from './find-calls.ts'
import { apiCalls, type Calls, recordCalls, sweepBatches } from './record-calls.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
  const house = await startHousekeeping(it.app, { partitions: [apiCalls, apiLog] })
  await house.stop()
})
afterAll(() => it.close())

const began = new Date('2026-03-01T12:00:00.000Z')
const someone = () => ({ organization_id: newId('org'), key_id: newId('key'), ip: '127.0.0.1' })
const nobody = { organization_id: null, key_id: null, ip: '' }

/** Lines without their request ids, which are made in order. */
function batchOf(callers: Calls['callers'], lines: [before: string, after: string][]) {
  const ids = lines.map(() => newId('req')).toSorted()
  const calls = lines.map(([before, after], n) => `${before} ${ids[n]} ${after}`).join('\n')
  const ends = { first_request: ids[0] ?? '', last_request: ids.at(-1) ?? '' }
  return { ids, body: { batch: randomUUID(), ...ends, began: began.toISOString(), callers, calls } }
}

const plain: [string, string] = ['0 1500 1', '200 GET /v1/me ']
const found = (ids: string[]) => Promise.all(ids.map((id) => callOfRequest(it.app.sql, id)))

test('keeps every call of a batch, with and without a key, in the partition of its day', async () => {
  const [one, other] = [someone(), { ...someone(), ip: '::1' }]
  const { ids, body } = batchOf(
    [one, other, nobody],
    [
      ['-2500 1500 1', '200 GET /v1/me '],
      ['0 12250 2', '400 POST /v1/a,{"}\\ invalid_field_value a b'],
      ['7 20 3', '401 GET /v1/me missing_api_key'],
    ],
  )
  expect(await ask(it.app, recordCalls, body)).toEqual({ recorded: true })
  const [first, second, third] = ids
  const me = { method: 'GET', path: '/v1/me' }
  const given = { organizationId: one.organization_id, keyId: one.key_id, ip: '127.0.0.1' }
  const early = { at: new Date(began.getTime() - 2_500), requestId: first, ...given }
  const refused = {
    at: began,
    requestId: second,
    organizationId: other.organization_id,
    keyId: other.key_id,
    ip: '::1',
  }
  const unknown = { at: new Date(began.getTime() + 7), requestId: third, organizationId: null, keyId: null, ip: '' }
  expect(await found(ids)).toEqual([
    { ...early, ...me, status: 200, durationMs: 1.5, problem: null },
    {
      ...refused,
      method: 'POST',
      path: '/v1/a,{"}\\',
      status: 400,
      durationMs: 12.25,
      problem: 'invalid_field_value a b',
    },
    { ...unknown, ...me, status: 401, durationMs: 0.02, problem: 'missing_api_key' },
  ])
  const [row] = await it.app.sql<[{ isThere: boolean }]>`
    select tableoid::regclass::text = 'api_calls_' || to_char(recorded_at at time zone 'utc', 'YYYYMMDD') as is_there
    from api_calls where first_request = ${first ?? ''}
  `
  expect(row.isThere).toBe(true)
})

test('a batch that comes again is recorded once, also while it is being recorded', async () => {
  const { ids, body } = batchOf([someone()], [plain, plain])
  const times = await Promise.all([1, 2, 3].map(() => ask(it.app, recordCalls, body)))
  expect(times.filter(({ recorded }) => recorded)).toHaveLength(1)
  expect(await ask(it.app, recordCalls, body)).toEqual({ recorded: false })
  const [row] = await it.app.sql`select count(*)::int as count from api_calls where first_request = ${ids[0] ?? ''}`
  expect(row).toEqual({ count: 1 })
})

test('a batch that cannot be recorded leaves nothing, so that its repetition is recorded', async () => {
  const { ids, body } = batchOf([someone()], [plain])
  const broken = { ...body, calls: '\0' }
  await expect(ask(it.app, recordCalls, broken)).rejects.toThrow('invalid byte sequence')
  expect(await ask(it.app, recordCalls, body)).toEqual({ recorded: true })
  expect(await found(ids)).toMatchObject([{ status: 200 }])
})

test('the names of batches are forgotten after a day', async () => {
  const [old, young] = [batchOf([nobody], [plain]).body, batchOf([nobody], [plain]).body]
  for (const body of [old, young]) await ask(it.app, recordCalls, body)
  for (const [{ batch }, age] of [
    [old, '25 hours'],
    [young, '23 hours'],
  ] as const)
    await it.app.sql`update api_log_batches set recorded_at = now() - ${age}::interval where id = ${batch}`
  expect(await sweepBatches(it.app.sql)).toBe(1)
  const left = await it.app.sql`select id from api_log_batches where id in (${old.batch}, ${young.batch})`
  expect([...left]).toEqual([{ id: young.batch }])
})

test('a call is found by its request id among many, and not by the path or the field of another that names it', async () => {
  const caller = someone()
  const { ids, body } = batchOf(
    [caller],
    Array.from({ length: 2_000 }, () => plain),
  )
  const wanted = ids[1_234] ?? ''
  const lines = body.calls.split('\n')
  lines[0] = `0 1 1 ${ids[0]} 404 GET /v1/${wanted} invalid_field_value ${wanted} 200`
  await ask(it.app, recordCalls, { ...body, calls: lines.join('\n') })
  const { history } = await ask(it.app, explainRequest, { id: wanted })
  expect(history).toMatchObject([{ what: 'GET /v1/me: 200', details: { key_id: caller.key_id, duration_ms: 1.5 } }])
  await expect(ask(it.app, explainRequest, { id: newId('req') })).rejects.toThrow('No such resource')
})

test.each([
  ['400', 'invalid_field_value to', 'invalid_field_value to'],
  ['404', 'resource_not_found path', 'resource_not_found: no endpoint has this path and method'],
  [
    '404',
    'resource_not_found id',
    'resource_not_found: the endpoint is there, and what the path names is not, or not this organization’s',
  ],
])('a call that was refused with %s tells why: %s', async (status, problem, words) => {
  const { ids, body } = batchOf([nobody], [['0 1 1', `${status} GET /v1/me ${problem}`]])
  await ask(it.app, recordCalls, body)
  const { history } = await ask(it.app, explainRequest, { id: ids[0] ?? '' })
  expect(history).toMatchObject([{ what: `GET /v1/me: ${status}, ${words}` }])
})

test('the calls of a key are told from those of others in its batches', async () => {
  const [one, other] = [someone(), someone()]
  const minuteAgo = new Date(Date.now() - 60_000)
  const { ids, body } = batchOf(
    [other, one],
    [
      ['0 1 2', '200 GET /v1/me '],
      ['0 1 2', '429 POST /v1/customers rate_limit_exceeded'],
      ['0 1 1', '429 GET /v1/me rate_limit_exceeded'],
    ],
  )
  await ask(it.app, recordCalls, batchOf([one], [plain]).body)
  await ask(it.app, recordCalls, body)
  await ask(it.app, recordCalls, batchOf([other], [plain]).body)
  expect(await lastCallSince(it.app.sql, one.key_id, minuteAgo)).toMatchObject({ requestId: ids[1], status: 429 })
  expect(await countCallsSince(it.app.sql, one.key_id, minuteAgo)).toEqual({ calls: 3, rateLimited: 1 })
  await it.app.sql`update api_calls set recorded_at = now() - interval '2 minutes'`
  expect(await lastCallSince(it.app.sql, one.key_id, minuteAgo)).toBeUndefined()
  expect(await countCallsSince(it.app.sql, one.key_id, minuteAgo)).toEqual({ calls: 0, rateLimited: 0 })
})

test('gateways of the versions before are understood', async () => {
  const ids = [newId('req'), newId('req')].toSorted()
  const { organization_id: organizationId, key_id: keyId } = someone()
  const of = { organization_id: organizationId, key_id: keyId, method: 'GET', path: '/v1/me', ip: '127.0.0.1' }
  const call = { ...of, at: began.toISOString(), request_id: ids[0] ?? '', status: 200, duration_ms: 1.5 }
  expect(await ask(it.app, recordApiCalls, { calls: [call] })).toEqual({ recorded: 1 })
  expect(await ask(it.app, recordApiCalls, { calls: [] })).toEqual({ recorded: 0 })
  const columns = {
    batch: randomUUID(),
    at: `${began.toISOString()}\n${new Date(began.getTime() + 5).toISOString()}`,
    organization_id: `\n${organizationId}`,
    key_id: `\n${keyId}`,
    request_id: `${newId('req')}\n${ids[1]}`,
    method: 'PUT\nGET',
    path: '/v1/x\n/v1/me',
    status: '404\n200',
    duration_ms: '3\n1.5',
    ip: '\n127.0.0.1',
  }
  const body = batchContract.body.parse(columns)
  expect(await ask(it.app, recordCallBatch, body)).toEqual({ recorded: 2 })
  expect(await ask(it.app, recordCallBatch, body)).toEqual({ recorded: 0 })
  const same = { organizationId, keyId, method: 'GET', path: '/v1/me', status: 200, durationMs: 1.5, ip: '127.0.0.1' }
  expect(await found(ids)).toEqual([
    { ...same, at: began, requestId: ids[0], problem: null },
    { ...same, at: new Date(began.getTime() + 5), requestId: ids[1], problem: null },
  ])
})

test('what was recorded row by row is found until its days are over', async () => {
  const { organization_id: organizationId, key_id: keyId } = someone()
  const [id, at] = [newId('req'), new Date(Date.now() - 60_000)]
  await it.app.sql`
    insert into api_log (at, organization_id, key_id, request_id, method, path, status, duration_ms, ip)
    values (${at}, ${organizationId}, ${keyId}, ${id}, 'GET', '/v1/me', 200, 1.5, '::1')
  `
  const call = { at, organizationId, keyId, requestId: id, status: 200, durationMs: 1.5, ip: '::1', problem: null }
  expect(await callOfRequest(it.app.sql, id)).toMatchObject(call)
  expect(await lastCallSince(it.app.sql, keyId, new Date(at.getTime() - 1))).toMatchObject(call)
  expect(await lastCallSince(it.app.sql, keyId, new Date())).toBeUndefined()
})

test('a call is kept for 30 days', async () => {
  const { ids, body } = batchOf([someone()], [plain])
  await ask(it.app, recordCalls, body)
  await keepPartitions(it.app.sql, apiCalls, Date.now() + 30 * 24 * 60 * 60 * 1000)
  expect(await found(ids)).toMatchObject([{ requestId: ids[0] }])
})
