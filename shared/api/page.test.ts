import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { openPage } from './page.ts'

const key = randomBytes(32)
const keys = { current: 'k1', byId: new Map([['k1', key]]) }
const contract = { subject: 'rpc.messaging.list-things' } as const
const caller = { organizationId: 'org_1' }
const rows = [5, 4, 3].map((n) => ({ id: `id${n}` }))
const first = openPage(keys, contract, caller, { limit: '2', status: 'sent' }, { phone: '1' })
const page = first.page(
  rows,
  ({ id }) => id,
  ({ id }) => id,
)
const cursor = page.next_cursor ?? ''

test('a page of one row more than asked for has a cursor behind its last item', () => {
  expect(page).toEqual({ data: ['id5', 'id4'], has_more: true, next_cursor: expect.any(String) })
  const second = openPage(keys, contract, caller, { limit: '50', status: 'sent', cursor }, { phone: '1' })
  expect(second).toMatchObject({ limit: 50, after: 'id4' })
  expect(second.page([], String, String)).toEqual({ data: [], has_more: false, next_cursor: null })
})

test('a page that has all that there is has no cursor, also when it is full', () => {
  const full = openPage(keys, contract, caller, { limit: '3' }).page(
    rows,
    ({ id }) => id,
    ({ id }) => id,
  )
  expect(full).toEqual({ data: ['id5', 'id4', 'id3'], has_more: false, next_cursor: null })
})

const again = (
  changes: object,
  { who = caller, params = { phone: '1' }, of = contract as { subject: `rpc.${string}.${string}` } } = {},
) => openPage(keys, of, who, { status: 'sent', cursor, ...changes }, params)

test('a cursor holds for its organization, endpoint, path and filters alone', () => {
  const bad = expect.objectContaining({ failure: 'invalid_cursor', param: 'cursor' })
  expect(() => again({ status: 'read' })).toThrow(bad)
  expect(() => again({ status: undefined })).toThrow(bad)
  expect(() => again({}, { who: { organizationId: 'org_2' } })).toThrow(bad)
  expect(() => again({}, { params: { phone: '2' } })).toThrow(bad)
  expect(() => again({}, { of: { subject: 'rpc.messaging.list-others' } })).toThrow(bad)
})

test('no character of a cursor can be changed, nor anything added', () => {
  for (let n = 0; n < cursor.length; n++) {
    const other = cursor[n] === 'A' ? 'B' : 'A'
    expect(() => again({ cursor: cursor.slice(0, n) + other + cursor.slice(n + 1) })).toThrow()
  }
  for (const changed of [`${cursor}=`, `${cursor}A`, ` ${cursor}`, '', 'null', cursor.slice(1)]) {
    expect(() => again({ cursor: changed })).toThrow()
  }
})

test('an older key in the ring still verifies, one that left it does not', () => {
  const rotated = {
    current: 'k2',
    byId: new Map([
      ['k2', randomBytes(32)],
      ['k1', key],
    ]),
  }
  const query = { status: 'sent', cursor }
  expect(openPage(rotated, contract, caller, query, { phone: '1' }).after).toBe('id4')
  rotated.byId.delete('k1')
  expect(() => openPage(rotated, contract, caller, query, { phone: '1' })).toThrow()
})
