import { expect, test } from 'vitest'
import { toProblem } from './problem.ts'
import { createTurns } from './turns.ts'

test('one owner cannot take the turns of the others, and a turn is given back whatever comes of it', async () => {
  const turns = createTurns({ inAll: 3, ofOne: 2 })
  const gate = Promise.withResolvers<void>()
  const hold = (owner: string) => turns.during(owner, () => gate.promise)
  const failureOf = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (err: unknown) => toProblem(err).failure,
    )
  const held = [hold('a'), hold('a')]
  expect(await failureOf(hold('a'))).toBe('service_unavailable')
  held.push(hold('b'))
  expect(await failureOf(hold('c'))).toBe('service_unavailable')
  gate.resolve()
  await Promise.all(held)
  expect(await failureOf(turns.during('a', () => Promise.reject(new Error('no'))))).toBe('internal_error')
  const again = [hold('a'), hold('a'), hold('c')]
  expect(await Promise.all(again.map(failureOf))).toEqual([null, null, null])
})
