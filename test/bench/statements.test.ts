import { expect, test } from 'vitest'
import { addStatements, costsOfOne, spentBetween } from './statements.ts'

const statement = (name: string, calls: number, totalMs: number, rows = calls) => ({
  name,
  calls,
  totalMs,
  planMs: totalMs / 4,
  rows,
})

test('tells what was spent between two readings, costliest first, of statements that ran', () => {
  const before = [statement('a', 10, 5), statement('b', 3, 3)]
  const after = [statement('a', 30, 6, 50), statement('b', 3, 3), statement('c', 1, 2)]
  expect(spentBetween(before, after)).toEqual([statement('c', 1, 2), statement('a', 20, 1, 40)])
})

test('adds several times up', () => {
  const times = [[statement('a', 1, 1)], [statement('a', 2, 3), statement('b', 1, 9)], []]
  expect(addStatements(times)).toEqual([statement('b', 1, 9), statement('a', 3, 4)])
})

test('shares them out between what was done', () => {
  const [title, first, second] = costsOfOne(
    'a send',
    [statement('insert', 500, 30, 1000), statement('commit', 250, 10)],
    1000,
  )
  expect(title).toBe('SQL of a send: 40 µs in statements')
  expect(first).toMatch(/^ +30\.0 µs +75 % +7\.5 planned +0\.50 calls +2\.0 rows each  insert$/)
  expect(second).toMatch(/^ +10\.0 µs +25 % +2\.5 planned +0\.25 calls +1\.0 rows each  commit$/)
  expect(costsOfOne('a send', [], 1000)).toEqual([])
})
