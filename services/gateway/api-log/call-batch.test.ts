import { expect, test } from 'vitest'
import { type Call, createWaitingCalls } from './call-batch.ts'

const beganAt = Date.parse('2026-03-08T12:00:00.000Z')

function call(requestId: string, more: Partial<Call> = {}, ip = '203.0.113.1', keyId: string | null = null): Call {
  const value = keyId === null ? undefined : { keyId, organizationId: `org of ${keyId}` }
  const exchange = { requestId, ip, identity: value ? { value } : null } as Call['exchange']
  return { exchange, beganAt, durationMs: 1, status: 200, method: 'GET', path: '/v1/me', problem: '', ...more }
}

test('a batch names its first and its last request, in whatever order they were answered', () => {
  const waiting = createWaitingCalls(10)
  for (const id of ['req_2', 'req_1', 'req_4', 'req_3']) waiting.add(call(id))
  expect(waiting.take()?.body).toMatchObject({ first_request: 'req_1', last_request: 'req_4' })
})

test('each call is a line, with its place among those who asked: a key at an address', () => {
  const waiting = createWaitingCalls(10)
  const askers = [
    ['203.0.113.1', 'key_1'],
    ['203.0.113.1', 'key_2'],
    ['203.0.113.2', 'key_1'],
    ['203.0.113.1', 'key_1'],
    ['203.0.113.1', null],
  ] as const
  for (const [ip, key] of askers) waiting.add(call('req_1', {}, ip, key))
  waiting.add(
    call('req_2', { beganAt: beganAt - 5, durationMs: 1.2345, status: 404, problem: 'resource_not_found id' }),
  )
  const { began, callers, calls } = waiting.take()?.body ?? {}
  expect(began).toBe('2026-03-08T12:00:00.000Z')
  expect(callers).toEqual([
    { organization_id: 'org of key_1', key_id: 'key_1', ip: '203.0.113.1' },
    { organization_id: 'org of key_2', key_id: 'key_2', ip: '203.0.113.1' },
    { organization_id: 'org of key_1', key_id: 'key_1', ip: '203.0.113.2' },
    { organization_id: null, key_id: null, ip: '203.0.113.1' },
  ])
  expect(calls?.split('\n')).toEqual([
    ...[1, 2, 3, 1, 4].map((place) => `0 1000 ${place} req_1 200 GET /v1/me `),
    '-5 1235 4 req_2 404 GET /v1/me resource_not_found id',
  ])
})

test('what waits is counted until it is taken, in batches of as many as may be, the oldest first', () => {
  const waiting = createWaitingCalls(20)
  for (let n = 10; n < 60; n++) waiting.add(call(`req_${n}`))
  const taken = Array.from({ length: 3 }, () => {
    const before = waiting.size
    const batch = waiting.take()
    return [
      before,
      batch?.calls,
      batch?.body.first_request,
      batch?.body.last_request,
      batch?.body.calls?.split('\n').length,
    ]
  })
  expect(taken).toEqual([
    [50, 20, 'req_10', 'req_29', 20],
    [30, 20, 'req_30', 'req_49', 20],
    [10, 10, 'req_50', 'req_59', 10],
  ])
  expect([waiting.size, waiting.take()]).toEqual([0, null])
})
