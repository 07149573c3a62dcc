import { expect, test } from 'vitest'
import { businessAccountId, inboundValue, metadata, statusPart } from '../testing/callbacks.ts'
import { splitCallback } from './split.ts'

const split = (body: unknown) => splitCallback(Buffer.from(JSON.stringify(body)))
const ofEntries = (...entry: unknown[]) => split({ object: 'whatsapp_business_account', entry })
const entryOf = (...changes: unknown[]) => ({ id: businessAccountId, changes })
const change = (value: object) => ({ field: 'messages', value: { metadata, ...value } })
const good = (id: string) => change(inboundValue(id, 'hi'))
const idsOf = ({ items }: ReturnType<typeof split>) => items.map(({ part }) => part['id'])

test.each([
  ['without changes', { id: businessAccountId }],
  ['without an id', { changes: [] }],
  ['that is a text', 'nonsense'],
  ['that is null', null],
])('an entry %s is counted, and its neighbours are taken', (_, bad) => {
  const found = ofEntries(entryOf(good('wamid.1')), bad, entryOf(good('wamid.2')))
  expect(idsOf(found)).toEqual(['wamid.1', 'wamid.2'])
  expect(found).toMatchObject({ others: [{ field: 'entry', reason: 'shape' }], fault: null })
})

test('an entry whose id is a number is taken as any other', () => {
  const found = ofEntries({ ...entryOf(good('wamid.1')), id: Number(businessAccountId) })
  expect(found).toMatchObject({ items: [{ entryId: businessAccountId }], others: [], fault: null })
})

test('a change without a field is counted, and its neighbours are taken', () => {
  const found = ofEntries(entryOf(good('wamid.1'), { value: {} }, 7, good('wamid.2')))
  expect(idsOf(found)).toEqual(['wamid.1', 'wamid.2'])
  const other = { field: 'changes', reason: 'shape' }
  expect(found).toMatchObject({ others: [other, other], fault: null })
})

test('a message or a status that is no object is counted, and its neighbours are taken', () => {
  const found = ofEntries(
    entryOf(
      change({
        messages: ['nonsense', ...inboundValue('wamid.1', 'hi').messages, null],
        statuses: [statusPart('wamid.2', 'sent'), []],
      }),
    ),
  )
  expect(found.items.map(({ kind, part }) => [kind, part['id']])).toEqual([
    ['message', 'wamid.1'],
    ['status', 'wamid.2'],
  ])
  const other = { field: 'messages', reason: 'shape' }
  expect(found).toMatchObject({ others: [other, other, other], fault: null })
})

test('messages that are no list are counted; those that are not there, or null, are none', () => {
  const found = ofEntries(
    entryOf(change({ messages: 'nonsense', statuses: [statusPart('wamid.1', 'sent')], errors: null })),
  )
  expect(idsOf(found)).toEqual(['wamid.1'])
  expect(found.others).toEqual([{ field: 'messages', reason: 'shape' }])
})

test('an error of a number that is no object does not hide the others', () => {
  const found = ofEntries(entryOf(change({ errors: [{ code: 190 }, 'nonsense'] })))
  expect(found.items).toMatchObject([{ kind: 'change', part: { value: { errors: [{ code: 190 }] } } }])
})

test.each([
  ['no JSON', '{"object"'],
  ['another object', { object: 'page', entry: [] }],
  ['no entries', { object: 'whatsapp_business_account' }],
])('what is no callback of the platform has a fault: %s', (_, body) => {
  const found = typeof body === 'string' ? splitCallback(Buffer.from(body)) : split(body)
  expect(found).toEqual({ items: [], others: [], fault: expect.any(String) })
})
