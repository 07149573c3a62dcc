import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createReadInTurn } from './read-in-turn.ts'

const large = 100 * 1024

test('of each organization one large body is read in a turn of the event loop, and small ones at once', async () => {
  const readInTurn = createReadInTurn()
  const read: string[] = []
  const ask = (organization: string, bytes: number, count: number) =>
    Array.from({ length: count }, () => readInTurn(organization, bytes, () => read.push(organization)))
  const asked = [...ask('org_1', large, 20), ...ask('org_2', large, 1), ...ask('org_1', 1_000, 1)]
  expect(read).toEqual(['org_1'])
  for (let turn = 1; turn <= 5; turn++) {
    await setImmediate()
    await Promise.resolve()
    expect(read.length).toBeLessThanOrEqual(2 + turn)
  }
  expect(read).toContain('org_2')
  await Promise.all(asked)
  expect(read).toHaveLength(22)
})

test('what takes long to be read leaves as much time to others', async () => {
  const readInTurn = createReadInTurn()
  const beganAt: number[] = []
  const read = () => {
    beganAt.push(performance.now())
    while (performance.now() < (beganAt.at(-1) ?? 0) + 30);
  }
  await Promise.all(Array.from({ length: 4 }, () => readInTurn('org_1', large, read)))
  const gaps = beganAt.slice(1).map((at, n) => at - (beganAt[n] ?? 0))
  for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(58)
})

test('what cannot be read is told, and those behind it are read', async () => {
  const readInTurn = createReadInTurn()
  const broken = readInTurn('org_1', large, () => JSON.parse('{'))
  const next = readInTurn('org_1', large, () => 'read')
  await expect(broken).rejects.toThrow(SyntaxError)
  expect(await next).toBe('read')
})
