import { expect, test } from 'vitest'
import type { OpenSend } from './open-send.ts'
import { codeOfRefusal, outcomeOf } from './outcome.ts'

/** What comes of attempts that fail, one after the other, until the send has failed. */
function outcomesOf(result: Parameters<typeof outcomeOf>[1]) {
  const attempts = Array.from({ length: 7 }, (_, n) => n + 1)
  return attempts.map((n) => outcomeOf({ attempts: n, relaxed: false, laneId: 'cnv_1' } as OpenSend, result))
}

const refused = (code: number) =>
  outcomesOf({
    kind: 'refused',
    code,
    message: 'no',
    details: '',
    isUnknownNumber: false,
    mayPass: false,
    httpStatus: 400,
  })

test('what does not reach the platform is tried again for a quarter of an hour, and fails at the seventh attempt', () => {
  const outcomes = outcomesOf({ kind: 'unreachable', details: 'ECONNREFUSED' })
  const waits = outcomes.slice(0, 6).map((outcome) => (outcome.kind === 'again' ? outcome.waitMs / 1_000 : 0))
  for (const [n, seconds] of [5, 15, 45, 120, 240, 420].entries()) {
    expect(waits[n]).toBeGreaterThanOrEqual(0.8 * seconds)
    expect(waits[n]).toBeLessThanOrEqual(1.2 * seconds)
  }
  expect(outcomes[6]).toMatchObject({ kind: 'failed', failure: { code: 'upstream_unavailable' } })
})

test('a recipient who gets too much waits as the platform advises: 4^X seconds', () => {
  const outcomes = refused(131056)
  const waits = outcomes.map((outcome) => (outcome.kind === 'again' ? outcome.waitMs / 1_000 : null))
  expect(waits).toEqual([1, 4, 16, 64, 256, 1024, null])
  expect(outcomes[0]).toMatchObject({ slowNumberMs: 0 })
})

test('a number that sends too fast rests twice as long each time', () => {
  const rests = refused(130429).map((outcome) => (outcome.kind === 'again' ? outcome.slowNumberMs / 1_000 : null))
  expect(rests).toEqual([1, 2, 4, 8, 16, 32, null])
})

test('a send fails with what its message may have as a reason, where that of its number has another name', () => {
  expect(codeOfRefusal('chat_number_not_verified')).toBe('account_not_connected')
  expect(codeOfRefusal('customer_suspended')).toBe('customer_suspended')
})
