import { amount } from '@app/test/fuzz/seed.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestApp, type TestApp } from './testing/app.ts'
import { customerLaws } from './testing/rival-customer-laws.ts'
import type { RivalHistory } from './testing/rival-history.ts'
import { numberLaws } from './testing/rival-number-laws.ts'
import { runRivalry } from './testing/rivalry.ts'

/**
 * Two organizations want the same five numbers: they connect, detach, move and register them, walk through dialogs, suspend,
 * archive and restore customers, while the platform shows and reports what it likes; all of it chosen by the seed, at the same
 * time, through two instances.
 */
const laws = { ...numberLaws, ...customerLaws }

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

const rounds = Array.from({ length: amount(1, 10) }, (_, n) => n + 1)

describe.each(rounds)('two organizations that want the same numbers, round %i', (round) => {
  let history: RivalHistory
  beforeAll(async () => {
    history = await runRivalry(it, round, amount(400, 1_000))
  }, 120_000)

  test('nothing fails but what may be refused', () => {
    expect(history.errors).toEqual([])
  })

  test('no number and no walk is left behind', () => {
    expect(history.stuck).toEqual([])
  })

  test.each(Object.entries(laws))('%s', (_name, law) => {
    expect(law(history)).toEqual([])
  })

  test('enough happened to be judged', () => {
    const types = new Set(history.events.map(({ type }) => type))
    expect(types).toContain('customer.setup_link.created')
    expect(history.states.length).toBeGreaterThan(0)
  })
})
