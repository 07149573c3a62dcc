import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { expect, test } from 'vitest'
import { createLaneHealth, type Ended } from './lane-health.ts'

const success: Ended = { as: 'success', tookMs: 10 }
const failure: Ended = { as: 'failure', isProbe: false, probedMs: 0, isPaused: false }
const failedProbe = (probedMs: number, isPaused = false): Ended => ({
  as: 'failure',
  isProbe: true,
  probedMs,
  isPaused,
})

const laneOf = (failures = 0): Lane => ({
  id: 'wbs_1',
  group: 'org_1',
  arrivals: '0',
  heldUntil: '',
  failures,
  pacedMs: 0,
})

/** A lane through settlements, at a clock that the test sets. */
function trial() {
  let nowMs = 0
  const health = createLaneHealth(Infinity, () => nowMs)
  let lane = laneOf()
  return {
    health,
    after: (...ends: Ended[]) => {
      const told = health.after(lane, ends)
      health.commit()
      lane = laneOf(told.failures)
      return told
    },
    capacity: () => health.capacity(lane),
    answersIn: () => health.answersIn(lane),
    pass: (ms: number) => (nowMs += ms),
  }
}

test('ten at a time; one after a failure, then two, four, eight, ten', () => {
  const { after, capacity } = trial()
  expect(capacity()).toBe(10)
  after(failure)
  const seen = [capacity()]
  for (let n = 0; n < 5; n++) {
    after(success)
    seen.push(capacity())
  }
  expect(seen).toEqual([1, 2, 4, 8, 10, 10])
})

test('one whose failures another process has counted gets one at a time, and two after its first success', () => {
  const { health, after, capacity } = trial()
  after(success)
  expect(health.capacity(laneOf(3))).toBe(1)
  health.after(laneOf(3), [success])
  health.commit()
  expect(capacity()).toBe(2)
})

test('how soon an endpoint answers is told while it gets ten at a time; of that the last success is an eighth', () => {
  const { after, answersIn } = trial()
  const slow: Ended = { as: 'success', tookMs: 90 }
  const seen = [
    [success],
    [slow],
    [failure],
    [success],
    [success, success, success],
    [{ as: 'unbegun' as const }],
    [slow],
  ].map((ends) => {
    after(...ends)
    return Math.round(answersIn())
  })
  expect([trial().answersIn(), ...seen]).toEqual([Infinity, 10, 20, Infinity, Infinity, 16, Infinity, 90])
})

test('four failures wait for nothing, the fifth opens the breaker', () => {
  const { after } = trial()
  expect(after(failure, failure, failure, failure)).toMatchObject({ failures: 4, waitMs: null })
  const opened = after(failure)
  expect(opened.failures).toBe(5)
  expect(opened.waitMs).toBeGreaterThanOrEqual(24_000)
  expect(opened.waitMs).toBeLessThanOrEqual(36_000)
})

test('probes come after 30, 60, 120, 240, 300, 300 s', () => {
  const { after, pass } = trial()
  const waits = [after(failure, failure, failure, failure, failure).waitMs]
  for (const probedSeconds of [30, 90, 210, 450, 750]) {
    pass(400_000)
    waits.push(after(failedProbe(probedSeconds * 1_000)).waitMs)
  }
  for (const [n, seconds] of [30, 60, 120, 240, 300, 300].entries()) {
    expect(Math.abs((waits[n] ?? 0) - seconds * 1_000)).toBeLessThanOrEqual(seconds * 200)
  }
})

test('attempts that were under way when it opened do not put the first probe off', () => {
  const { after } = trial()
  expect(after(...Array.from({ length: 10 }, () => failure)).waitMs).toBeLessThanOrEqual(36_000)
})

test('a probe that fails puts the next one off, also when an attempt that was under way failed before it', () => {
  const { after } = trial()
  after(failure, failure, failure, failure, failure)
  expect(after(failedProbe(90_000)).waitMs).toBeGreaterThanOrEqual(96_000)
})

test('a subscription that pauses itself is probed after five minutes, whatever was under way; then ever more rarely', () => {
  const { health, after, pass } = trial()
  after(failure, failure, failure, failure, failure)
  const waits = [health.pause('wbs_1')]
  health.commit()
  const late = after(failure).waitMs ?? 0
  expect(Math.abs(late - (waits[0] ?? 0))).toBeLessThan(1)
  for (const probedMinutes of [5, 15, 35, 75, 135]) {
    pass(5_000_000)
    waits.push(after(failedProbe(probedMinutes * 60_000, true)).waitMs ?? 0)
  }
  for (const [n, minutes] of [5, 10, 20, 40, 60, 60].entries()) {
    expect(Math.abs((waits[n] ?? 0) / 60_000 - minutes)).toBeLessThanOrEqual(minutes * 0.2)
  }
})

test('while too many calls are silent, an endpoint gets two at a time until it answers', () => {
  let nowMs = 0
  const health = createLaneHealth(20, () => nowMs)
  const lane = laneOf()
  const begun = (n: number) => health.begun({ id: `wbs_hanging_${n}`, group: `org_${n % 5}` })
  const hanging = Array.from({ length: 20 }, (_, n) => begun(n))
  expect(health.capacity(lane)).toBe(10)
  hanging.push(begun(20))
  expect(health.capacity(lane)).toBe(2)
  const [first, second] = [health.begun(lane), health.begun(lane)]
  expect(health.capacity(lane)).toBe(2)
  nowMs += 5
  first?.(true)
  expect(health.capacity(lane)).toBe(10)
  second?.(true)
  hanging.forEach((end) => end(false))
  expect(health.capacity(lane)).toBe(10)
})

test('what one organization has that is silent holds back its own endpoints, and those of others get as many as ever', () => {
  const health = createLaneHealth(20, () => 0)
  const begin = (group: string) => Array.from({ length: 30 }, (_, n) => health.begun({ id: `${group}_${n}`, group }))
  const silent = begin('org_silent')
  expect(health.capacity(laneOf())).toBe(10)
  expect(health.capacity({ ...laneOf(), id: 'wbs_new', group: 'org_silent' })).toBe(2)
  silent.push(...['org_a', 'org_b', 'org_c', 'org_d'].flatMap(begin))
  expect(health.capacity(laneOf())).toBe(2)
  silent.forEach((end) => end(false))
  expect(health.capacity(laneOf())).toBe(10)
})

test('a failure tells whether it begins a row of failures', () => {
  const { after } = trial()
  const seen = [[failure], [failure], [success, failure], [failure, success], [success], [failure]].map(
    (ends) => after(...ends).isNewStreak,
  )
  expect(seen).toEqual([true, false, true, false, false, true])
})

test('one success closes the breaker', () => {
  const { after } = trial()
  after(failure, failure, failure, failure, failure)
  expect(after(success)).toMatchObject({ failures: 0, waitMs: null })
})

test('a Retry-After holds, whatever else comes back meanwhile, and is no failure', () => {
  const { after, pass } = trial()
  expect(after({ as: 'wait', waitMs: 60_000 })).toMatchObject({ failures: 0, waitMs: 60_000 })
  pass(10_000)
  expect(after(success)).toMatchObject({ failures: 0, waitMs: 50_000 })
  expect(after({ as: 'wait', waitMs: 5_000 })).toMatchObject({ failures: 0, waitMs: 50_000 })
})

test('a lane that is claimed anew has waited', () => {
  const { health, after } = trial()
  after({ as: 'wait', waitMs: 60_000 })
  health.claimed([laneOf()])
  expect(after(success).waitMs).toBeNull()
  after(failure, failure, failure, failure, failure)
  health.claimed([laneOf()])
  expect(health.after(laneOf(), [failure]).waitMs).toBeNull()
})

test('a hold is over when its lane was claimed again since, unless it was renewed after that', () => {
  const { health } = trial()
  const held = (until: string) => ({ ...laneOf(), heldUntil: `2026-01-01 00:00:${until}+00` })
  expect(health.isOver(held('10'))).toBe(false)
  health.claimed([held('10.5')])
  expect(['10', '10.49', '10.5', '10.51', '11'].map((until) => health.isOver(held(until)))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ])
})

test('what was worked out in a transaction that was rolled back never was', () => {
  const { health, capacity } = trial()
  health.after(laneOf(), [failure, failure, success])
  expect(health.capacity(laneOf())).toBe(2)
  health.rollback()
  expect(capacity()).toBe(10)
})

test('an endpoint that is silent for a second gets nothing more until it answers', () => {
  const { health, capacity, pass } = trial()
  const ends = [health.begun(laneOf()), health.begun(laneOf())]
  pass(999)
  expect(capacity()).toBe(10)
  pass(2)
  expect(capacity()).toBe(1)
  ends[1]?.(true)
  expect(capacity()).toBe(10)
})
