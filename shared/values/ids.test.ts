import { expect, test } from 'vitest'
import { firstIdAt, idOf, newId, newIdAt, timeOf } from './ids.ts'

test('ids of one process rise, fit their schema, and hold their time', () => {
  const before = Date.now()
  const ids = Array.from({ length: 5_000 }, () => newId('msg'))
  expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)))
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.every((id) => idOf('msg').safeParse(id).success)).toBe(true)
  expect(timeOf(ids[0] ?? '').getTime()).toBeGreaterThanOrEqual(before)
})

test('an id can be minted at another time, and lies behind the first id of that time', () => {
  const at = new Date('2026-03-01T12:00:00.123Z')
  const id = newIdAt('msg', at)
  expect(timeOf(id)).toEqual(at)
  expect(id > firstIdAt('msg', at)).toBe(true)
  expect(id < firstIdAt('msg', new Date(at.getTime() + 1))).toBe(true)
})

test('ids of one past second rise in the order in which they are minted', async () => {
  const at = new Date('2026-03-01T12:00:00.000Z')
  const ids: string[] = []
  for (let n = 0; n < 8; n++) {
    ids.push(newIdAt('msg', at), newIdAt('msg', at))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)))
})

test.each([
  'msg_',
  'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKC',
  'ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCI',
  'msg_01jq8z6v0a7xj2n5t9wq3rbkcd',
])('%s is no id of a message', (id) => expect(idOf('msg').safeParse(id).success).toBe(false))

test.each([
  ['msg', 'must be a msg_ id'],
  ['org', 'must be an org_ id'],
] as const)('what is no id of the kind %s is told which kind is meant', (prefix, words) => {
  expect(idOf(prefix).safeParse('x').error?.issues[0]?.message).toBe(words)
})

test.each(['msg_7ZZZZZZZZZZZZZZZZZZZZZZZZZ', 'msg_ZZZZZZZZZZZZZZZZZZZZZZZZZZ'])(
  '%s, which nobody minted, is an id, and its time is one that Postgres reads',
  (id) => {
    expect(idOf('msg').safeParse(id).success).toBe(true)
    expect(timeOf(id).toISOString()).toBe('9999-12-31T23:59:59.999Z')
  },
)
