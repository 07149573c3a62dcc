import { expect, test } from 'vitest'
import { createBoundedMap } from './bounded-map.ts'

test('keeps the newest entries, oldest first', () => {
  const map = createBoundedMap<number>(3)
  for (let index = 0; index < 10; index++) map.set(`${index}`, index)
  expect([...map.values()]).toEqual([7, 8, 9])
  expect(map.has('6')).toBe(false)
})

test('makes an entry that is set again the newest', () => {
  const map = createBoundedMap<string>(2)
  for (const key of ['a', 'b', 'a', 'c']) map.set(key, key)
  expect([...map.values()]).toEqual(['a', 'c'])
})

test('keeps its bound and its order however often it turns over', () => {
  const map = createBoundedMap<number>(1_000)
  for (let index = 0; index < 100_000; index++) {
    map.set(`${index}`, index)
    if (index % 7 === 0) map.set(`${index - 500}`, index)
  }
  const values = [...map.values()]
  expect(values).toHaveLength(1_000)
  expect(map.size()).toBe(1_000)
  expect(values).toEqual(values.toSorted((a, b) => a - b))
})
