import { expect, test } from 'vitest'
import { createInWork } from './in-work.ts'

const mib = 1024 * 1024

test('an organization has no more in work than is left for others, by count and by bytes', () => {
  const { begin } = createInWork()
  const taken = (owner: string, bytes: number) =>
    Array.from({ length: 5_000 }, () => begin(owner, bytes)).filter((end) => end !== null).length
  expect([taken('org_1', 0), taken('org_2', 0)]).toEqual([2_048, 1_024])
  const other = createInWork()
  const held = Array.from({ length: 500 }, () => other.begin('org_1', mib)).filter((end) => end !== null)
  expect(held).toHaveLength(128)
  expect(other.begin('org_2', 8 * mib)).not.toBeNull()
})

test('what services ask for nobody in particular may fill what is left', () => {
  const { begin } = createInWork()
  const taken = Array.from({ length: 5_000 }, () => begin('', 0)).filter((end) => end !== null)
  expect(taken).toHaveLength(4_096)
})

test('what has ended is given back', () => {
  const { begin } = createInWork()
  for (let n = 0; n < 10_000; n++) begin(`org_${n}`, mib)?.()
  const ends = Array.from({ length: 2_048 }, () => begin('org_1', 0))
  expect(begin('org_1', 0)).toBeNull()
  ends[0]?.()
  expect(begin('org_1', 0)).not.toBeNull()
})
