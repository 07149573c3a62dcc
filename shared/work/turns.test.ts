import { expect, test } from 'vitest'
import { createLines, createTurns } from './turns.ts'

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
  const take = hold(createTurns({ ofOne: 8, inAll: 32, firsts: 64 }))
  const held = (owner: string) => Array.from({ length: 10 }, () => take(owner)).filter(Boolean).length
  expect(['first', 'second', 'third', 'fourth'].map(held)).toEqual([8, 8, 8, 4])
  expect(take('fifth')).toBe(true)
})

test('however many others hold theirs, an owner gets its first turn, up to a bound', () => {
  const take = hold(createTurns({ ofOne: 8, inAll: 32, firsts: 64 }))
  const held = (owner: string) => Array.from({ length: 10 }, () => take(owner)).filter(Boolean).length
  const few = Array.from({ length: 7 }, (_, n) => held(`slow ${n}`))
  expect(few).toEqual([8, 8, 8, 4, 2, 1, 1])
  const more = Array.from({ length: 65 }, (_, n) => held(`one more ${n}`))
  expect(more).toEqual([...Array.from({ length: 64 }, () => 1), 0])
})

test('what is given back can be taken again, and more than all is refused', async () => {
  const turns = createTurns({ ofOne: 2, inAll: 2, firsts: 0 })
  const take = hold(turns)
  await turns.during('a', () => Promise.resolve())
  expect([take('a'), take('a'), take('b'), take('c')]).toEqual([true, false, true, false])
  await expect(turns.during('d', () => Promise.resolve())).rejects.toMatchObject({ failure: 'service_unavailable' })
})

/** Works in lines: what has begun, in its order, and how each is ended. */
function worksOf(ofOne: number, inAll?: number) {
  const inLine = createLines(ofOne, inAll)
  const begun: string[] = []
  const ends = new Map<string, (() => void)[]>()
  const begin = (owner: string, count = 1) => {
    for (let n = 0; n < count; n++)
      void inLine(owner, () => {
        begun.push(owner)
        return new Promise<void>((end) => ends.set(owner, [...(ends.get(owner) ?? []), end]))
      })
  }
  const end = async (owner: string) => {
    ends.get(owner)?.shift()?.()
    await new Promise((resolve) => setImmediate(resolve))
    return begun.splice(0)
  }
  return { begin, end, begun: () => begun.splice(0) }
}

test('in lines of their own, nobody waits behind another owner, and everybody in his order', async () => {
  const { begin, end, begun } = worksOf(2)
  begin('a', 4)
  begin('b', 1)
  expect(begun()).toEqual(['a', 'a', 'b'])
  expect(await end('b')).toEqual([])
  expect(await end('a')).toEqual(['a'])
  expect(await end('a')).toEqual(['a'])
})

test('in lines an owner has no more at a time because some of his have ended', async () => {
  const { begin, end, begun } = worksOf(2)
  begin('a', 2)
  await end('a')
  begin('a', 3)
  expect(begun()).toEqual(['a'])
  expect(await end('a')).toEqual(['a'])
})

test('in lines with a limit in all, an owner’s first never waits, and whoever has the fewest gets the next', async () => {
  const { begin, end, begun } = worksOf(4, 6)
  begin('a', 9)
  begin('b', 9)
  begin('c', 9)
  begin('d', 9)
  expect(begun()).toEqual(['a', 'a', 'a', 'b', 'b', 'c', 'd'])
  // One beyond the limit ends.
  expect(await end('a')).toEqual([])
  expect(await end('a')).toEqual([])
  // Two are free, and all have one: whoever has waited longest gets a second.
  expect(await end('b')).toEqual(['a'])
  expect(await end('a')).toEqual(['b'])
  expect(await end('b')).toEqual(['c'])
  expect(await end('c')).toEqual(['d'])
  begin('e')
  expect(begun()).toEqual(['e'])
})

test('in lines with a limit in all, whoever has the fewest comes before another that has waited longer', async () => {
  const { begin, end, begun } = worksOf(4, 6)
  begin('a', 9)
  begin('b', 9)
  expect(begun()).toEqual(['a', 'a', 'a', 'b', 'b'])
  expect(await end('a')).toEqual([])
  expect(await end('b')).toEqual(['b'])
})
