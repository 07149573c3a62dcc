import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

/** Takes turns that are not given back; answers whether it got one. */
const hold = (turns: ReturnType<typeof createTurns>) => (owner: string) => {
  let got = false
  void turns
    .during(owner, () => {
      got = true
      return new Promise<never>(() => {})
    })
    .catch(() => {})
  return got
}

test('an owner has so many turns, and whoever holds them a long time leaves some for others', () => {
  const take = hold(createTurns({ inAll: 32, ofOne: 8 }))
  const held = (owner: string) => Array.from({ length: 10 }, () => take(owner)).filter(Boolean).length
  expect(['first', 'second', 'third', 'fourth'].map(held)).toEqual([8, 8, 8, 4])
  expect(take('fifth')).toBe(true)
})

test('what is given back can be taken again, and more than all is refused', async () => {
  const turns = createTurns({ inAll: 2, ofOne: 2 })
  const take = hold(turns)
  await turns.during('a', () => Promise.resolve())
  expect([take('a'), take('a'), take('b'), take('c')]).toEqual([true, false, true, false])
  await expect(turns.during('d', () => Promise.resolve())).rejects.toMatchObject({ failure: 'service_unavailable' })
})
