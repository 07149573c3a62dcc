import { expect, test } from 'vitest'
import { mostRecent } from './most-recent.ts'

test('what was used last is kept, so many of it, and who asks is told what goes', () => {
  const gone: string[] = []
  const known = mostRecent<string, number>(3, { dispose: (_, key, why) => gone.push(`${key} ${why}`) })
  for (const [n, key] of ['a', 'b', 'c'].entries()) known.set(key, n)
  known.get('a')
  known.set('c', 7)
  known.set('d', 3)
  known.set('e', 4)

  expect([...known.keys()].toSorted()).toEqual(['c', 'd', 'e'])
  expect(gone).toEqual(['c set', 'b evict', 'a evict'])
})

test('a very long memory costs nothing before there is anything in it', () => {
  const before = process.memoryUsage().heapUsed
  const known = Array.from({ length: 10 }, () => mostRecent<string, number>(1_000_000))

  expect(known.map(({ size }) => size)).toEqual(known.map(() => 0))
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000)
})
