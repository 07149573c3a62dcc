import { expect, test } from 'vitest'
import { ourFailure, outcomeOf } from './outcome.ts'

const away = { status: null, failure: { failure: 'dns_error', message: '', isOurs: true } } as const

test.each([
  ['a name server of ours that is away', (counted: Counted) => outcomeOf(away, counted, 0, 0)],
  ['something of ours that fails before the call', (counted: Counted) => ourFailure(counted, 0)],
])('an endpoint waits seconds for %s, and longer each time', (_, outcome) => {
  const waits = [1, 2, 3, 20].map((number) => {
    const ended = outcome({ number, tries: 0 })
    return ended.kind === 'wait' ? ended.waitMs : 0
  })
  for (const [n, seconds] of [5, 10, 20, 300].entries())
    expect(Math.abs((waits[n] ?? 0) - seconds * 1_000)).toBeLessThanOrEqual(seconds * 200)
})

interface Counted {
  number: number
  tries: number
}

test('of what was away the outcome tells the log, and not the owner of the endpoint', () => {
  const failure = {
    failure: 'connection_failed',
    message: 'It failed.',
    isOurs: true,
    ours: 'The proxy is away.',
  } as const
  expect(outcomeOf({ status: null, failure }, { number: 1, tries: 0 }, 0, 0)).toMatchObject({
    kind: 'wait',
    ours: 'The proxy is away.',
    attempt: { error: { code: 'connection_failed', message: 'It failed.' } },
  })
})
