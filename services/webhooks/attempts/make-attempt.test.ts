import { createSecretKey } from 'node:crypto'
import { createEgress } from '@app/shared/outside/egress.ts'
import { until } from '@app/test/until.ts'
import { afterAll, afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Core } from '../app.ts'
import { newAttempt } from '../testing/new-attempt.ts'
import { answer, type Receiver, startReceiver } from '../testing/receiver.ts'
import { makeAttempt } from './make-attempt.ts'
import type { Attempt } from './open-attempts.ts'

const egress = createEgress({ allowCidrs: '127.0.0.0/8' })
const cause = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const own = '00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01'
let receiver: Receiver
/** What was logged, and of spans their parents and how they ended. */
let lines: [level: string, said: { [field: string]: unknown }][] = []
let spans: [parent: string, failure: string | undefined][] = []

beforeEach(async () => {
  receiver = await startReceiver()
  lines = []
  spans = []
})
afterEach(() => receiver.close())
afterAll(() => egress.close())

const say = (level: string) => (said: { [field: string]: unknown }) => void lines.push([level, said])
const core = {
  egress,
  log: { isLevelEnabled: () => true, debug: say('debug'), info: say('info'), error: say('error') },
  tracer: {
    begin: (_name: string, { parent }: { parent: string }) => ({
      traceparent: own,
      end: (failure?: string) => void spans.push([parent, failure]),
    }),
  },
} as unknown as Core

const means = { keysOf: () => [createSecretKey('whsec_test', 'utf8')], mayBegin: () => true }

const payload = { type: 'message.received', source: 'upstream', body: Buffer.from('{}'), trace: cause } as const
const attemptOf = (more: Partial<Attempt> = {}) => newAttempt({ url: receiver.url, payload, ...more })

test('an attempt tells its endpoint what it is of, and goes on with the trace of its event', async () => {
  const eventId = 'wamid.é\r\nx-other: 1'
  expect(await makeAttempt(core, attemptOf({ eventId }), means)).toMatchObject({ kind: 'succeeded' })
  expect(receiver.got[0]?.headers).toMatchObject({
    'user-agent': 'svc-webhooks/1.0',
    'x-svc-source': 'upstream',
    'x-svc-event-id': encodeURIComponent(eventId),
    traceparent: own,
  })
  expect(spans).toEqual([[cause, undefined]])
})

test('one in vain is told in the log with its trace, one that succeeded to who looks for it alone', async () => {
  await makeAttempt(core, attemptOf(), means)
  receiver.respondWith(answer(500))
  await makeAttempt(core, attemptOf(), means)
  const told = { organization: 'org_1', subscription: 'wbs_1', delivery: 'wbd_1', trace: cause.split('-')[1] }
  expect(lines).toMatchObject([
    ['debug', { ...told, outcome: 'succeeded' }],
    ['info', { ...told, outcome: 'failed', status: 500 }],
  ])
  expect(spans).toEqual([
    [cause, undefined],
    [cause, 'failed'],
  ])
})

test('nothing is sent without a signature: where no secret is left, the endpoint waits', async () => {
  const outcome = await makeAttempt(core, attemptOf(), { ...means, keysOf: () => [] })
  expect(outcome).toMatchObject({ kind: 'wait', attempt: { error: { code: 'internal_error' } } })
  expect(receiver.got).toEqual([])
})

test('what is delivered of an event that is kept no more is over, and not sent', async () => {
  const outcome = await makeAttempt(core, attemptOf({ payload: null }), means)
  expect(outcome).toMatchObject({ kind: 'expired', attempt: { error: { code: 'expired' } } })
  expect(receiver.got).toEqual([])
})

test('one that may begin no more is none', async () => {
  expect(await makeAttempt(core, attemptOf(), { ...means, mayBegin: () => false })).toBeNull()
  expect([receiver.got, lines, spans]).toEqual([[], [], [[cause, 'unbegun']]])
})

test('an endpoint has 15 s to answer, and how long it took is kept', async () => {
  receiver.respondWith(() => {})
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  let isOver = false
  const attempt = makeAttempt(core, attemptOf(), means).finally(() => (isOver = true))
  await until(() => expect(receiver.got).toHaveLength(1))
  vi.advanceTimersByTime(14_999)
  await new Promise(setImmediate)
  expect(isOver).toBe(false)
  vi.advanceTimersByTime(1)
  expect(await attempt).toMatchObject({ kind: 'failed', attempt: { durationMs: 15_000, error: { code: 'timeout' } } })
})
