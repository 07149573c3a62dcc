import { expect, test } from 'vitest'
import { toProblem } from './problem.ts'
import { createLines, createTurns } from './turns.ts'

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

test('an owner’s work waits in line for its turns, whatever comes of those before it', async () => {
  const inLine = createLines(2)
  const begun: string[] = []
  const gates = new Map<string, PromiseWithResolvers<void>>()
  const work = (owner: string, name: string) =>
    inLine(owner, () => {
      begun.push(name)
      const gate = Promise.withResolvers<void>()
      gates.set(name, gate)
      return gate.promise
    })
  const all = ['a1', 'a2', 'a3', 'a4', 'b1'].map((name) => work(name.charAt(0), name).catch(() => name))
  expect(begun).toEqual(['a1', 'a2', 'b1'])
  gates.get('a2')?.reject(new Error('no'))
  await expect.poll(() => begun).toEqual(['a1', 'a2', 'b1', 'a3'])
  for (const name of ['a1', 'a3', 'b1']) gates.get(name)?.resolve()
  await expect.poll(() => begun).toHaveLength(5)
  gates.get('a4')?.resolve()
  expect(await Promise.all(all)).toEqual([undefined, 'a2', undefined, undefined, undefined])
})
