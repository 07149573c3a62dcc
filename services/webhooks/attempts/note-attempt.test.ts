import { type Probes, startProbes } from '@app/shared/service/probes.ts'
import { firstIdAt, newId } from '@app/shared/values/ids.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createMeters } from '../metrics.ts'
import { noteAttempt } from './note-attempt.ts'
import type { Attempt } from './open-attempts.ts'
import { type Outcome, ourFailure, payloadGone } from './outcome.ts'

let probes: Probes
let note: (attempt: Partial<Attempt>, outcome: Outcome) => void

beforeEach(async () => {
  probes = await startProbes(0, '127.0.0.1')
  const meters = createMeters({ probes })
  note = (attempt, outcome) =>
    noteAttempt(meters, { id: newId('wbd'), number: 1, tries: 0, isProbe: false, ...attempt } as Attempt, outcome)
})

afterEach(() => probes.close())

const answered = (kind: 'succeeded' | 'failed' | 'gone', status: number): Outcome => ({
  kind,
  attempt: { startedAtMs: 0, durationMs: 500, status, snippet: '', error: null },
})

/** The series of a metric that have counted something. */
async function counted(name: string) {
  const values = (await probes.metrics.getSingleMetric(name)?.get())?.values ?? []
  return values.filter(({ value }) => value > 0).map(({ labels, value }) => [Object.values(labels)[0], value])
}

/** How many a histogram has seen, and their sum, rounded to tenths. */
async function seen(name: string) {
  const text = await probes.metrics.getSingleMetricAsString(name)
  return ['count', 'sum'].map((what) => {
    const [, value] = new RegExp(`^${name}_${what}\\S* (\\S+)$`, 'm').exec(text) ?? []
    return Math.round(Number(value) * 10) / 10
  })
}

test('an attempt in vain is counted by the class of its answer, or by why there was none', async () => {
  note({}, answered('succeeded', 200))
  note({}, answered('failed', 503))
  note({}, answered('failed', 500))
  note({}, answered('gone', 410))
  note({}, ourFailure({ number: 1, tries: 0 }, 0))
  expect(await counted('svc_webhook_attempt_failures_total')).toEqual([
    ['5xx', 2],
    ['4xx', 1],
    ['internal_error', 1],
  ])
})

test('what was given up after an attempt is counted by its reason: a twelfth try, but no probe', async () => {
  note({ tries: 10 }, answered('failed', 500))
  note({ tries: 11, isProbe: true }, answered('failed', 500))
  note({ tries: 11 }, answered('succeeded', 200))
  expect(await counted('svc_webhook_dead_letters_total')).toEqual([])
  note({ tries: 11 }, answered('failed', 500))
  note({}, answered('gone', 410))
  note({}, payloadGone(0))
  expect(await counted('svc_webhook_dead_letters_total')).toEqual([
    ['exhausted', 1],
    ['gone', 1],
    ['expired', 1],
  ])
})

test('from an event to its first attempt the time is told, and of each attempt how long it took, in seconds', async () => {
  const id = firstIdAt('wbd', new Date(Date.now() - 20_000))
  note({ id }, answered('failed', 500))
  note({ id, number: 2 }, answered('failed', 500))
  expect(await seen('svc_webhook_delay_seconds')).toEqual([1, 20])
  expect(await seen('svc_webhook_attempt_seconds')).toEqual([2, 1])
})
