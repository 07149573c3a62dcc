import { expect, test } from 'vitest'
import { awake } from './awake.ts'
import type { Call } from './history.ts'

const change: Call = {
  tenant: 'org_a',
  method: 'POST',
  path: '/111/messages',
  key: null,
  startedAt: 0,
  endedAt: 1_000,
  status: 503,
  text: '{}',
  retryAfter: '1',
  misfit: null,
}
/** One each second. */
const callsOf = (statuses: (number | null)[], method = 'POST'): Call[] =>
  statuses.map((status, second) => ({
    ...change,
    method,
    status,
    startedAt: second * 1_000,
    endedAt: second * 1_000 + 900,
  }))
const refused = Array<number | null>(35).fill(503)

test('changes that are refused, or not answered, for longer than any fault lasts are a breach', () => {
  expect(awake({ calls: callsOf(refused) })).toEqual(['awake: no change succeeded for 35 s'])
  expect(awake({ calls: callsOf([...refused.slice(0, 34), 200]) })).toHaveLength(1)
  expect(awake({ calls: callsOf(refused.with(7, null)) })).toHaveLength(1)
})

test('one that succeeds in between, or is refused for what it asks, is a sign of life; a read is none', () => {
  for (const sign of [200, 422]) expect(awake({ calls: callsOf(refused.with(17, sign)) })).toEqual([])
  const reads = callsOf(refused.with(17, 200), 'GET')
  expect(awake({ calls: reads })).toEqual([])
  expect(awake({ calls: [...callsOf(refused), ...reads] })).toHaveLength(1)
})
