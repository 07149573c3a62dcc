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

test('a number that is named by a number is as one named by its digits', () => {
  const named = { ...metadata, phone_number_id: Number(metadata.phone_number_id) }
  const found = ofEntries(
    entryOf(
      change({ metadata: named, ...inboundValue('wamid.1', 'hi') }),
      { field: 'history', value: { metadata: named, history: [{ threads: [] }] } },
      { field: 'account_update', value: { event: 'X', waba_info: { waba_id: 235 } } },
    ),
  )
  const ofNumber = { phoneNumberId: metadata.phone_number_id, metadata }
  expect(found).toMatchObject({ items: [ofNumber, ofNumber, { entryId: '235', phoneNumberId: null }], others: [] })
})

test.each(['user_preferences', 'user_id_update', 'smb_message_echoes', 'smb_app_state_sync', 'history'])(
  'a change that is always of a number, and names none, is counted: %s',
  (field) => {
    const value = { [field]: [], message_echoes: [{}], state_sync: [{}], history: [{}] }
    const found = ofEntries(entryOf({ field, value }, { field, value: { ...value, metadata: {} } }))
    expect(found).toEqual({
      items: [],
      others: [
        { field, reason: 'shape' },
        { field, reason: 'shape' },
      ],
      fault: null,
    })
  },
)

test('errors of a number are told of also beside messages and statuses', () => {
  const errors = [{ code: 131031 }]
  const found = ofEntries(
    entryOf(
      change({ ...inboundValue('wamid.1', 'hi'), errors }),
      change({ statuses: [statusPart('wamid.2', 'sent')], errors }),
    ),
  )
  expect(found.items.map(({ kind }) => kind)).toEqual(['message', 'change', 'status', 'change'])
  expect(found.items[1]?.part).toEqual({ field: 'errors', value: { errors } })
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

const people = [{ profile: { name: 'Ana' }, wa_id: '15550123456', user_id: 'US.1' }]
const contactsIn = ({ items }: ReturnType<typeof split>) => items.map(({ contacts }) => contacts)

test('the only contact of a change is not told beside what names somebody else', () => {
  const failed = statusPart('wamid.2', 'failed', { recipient_id: '15550199999' })
  const written = { ...inboundValue('wamid.3', 'hi').messages[0], from: '15550199999' }
  const found = ofEntries(
    entryOf(
      change({ contacts: people, statuses: [statusPart('wamid.1', 'delivered'), failed] }),
      change({ contacts: people, messages: [...inboundValue('wamid.4', 'hi').messages, written] }),
    ),
  )
  expect(contactsIn(found)).toEqual([people, [], people, []])
  const alone = ofEntries(
    entryOf(change({ contacts: people, statuses: [failed] }), change({ contacts: people, messages: [written] })),
  )
  expect(contactsIn(alone)).toEqual([[], []])
})

test('people whom a change names by user id alone, with null for their numbers, are told apart', () => {
  const [message] = inboundValue('wamid.1', 'hi').messages
  const contacts = ['US.1', 'US.2'].map((id) => ({ profile: { name: id }, wa_id: null, user_id: id }))
  const messages = contacts.map(({ user_id: id }) => ({ ...message, from: null, from_user_id: id }))
  expect(contactsIn(ofEntries(entryOf(change({ contacts, messages }))))).toEqual(contacts.map((one) => [one]))
})

test.each([
  ['nobody', { from: undefined }],
  ['one by another kind of id', { from: undefined, from_user_id: 'US.1' }],
])('the only contact of a change is that of a message that names %s', (_, more) => {
  const [message] = inboundValue('wamid.1', 'hi').messages
  const [{ user_id: _user, ...contact } = {}] = people
  const found = ofEntries(entryOf(change({ contacts: [contact], messages: [{ ...message, ...more }] })))
  expect(contactsIn(found)).toEqual([[contact]])
})

test('a change of thousands of people and messages is taken apart at once', () => {
  const people = Array.from({ length: 3_000 }, (_, n) => ({ wa_id: String(15550000000 + n) }))
  const messages = people.map(({ wa_id: from }, n) => ({ from, id: `wamid.${n}` }))
  const bytes = Buffer.from(
    JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [entryOf(change({ contacts: people, messages }))],
    }),
  )
  const startedAt = performance.now()
  const found = splitCallback(bytes)
  expect(performance.now() - startedAt).toBeLessThan(3_000)
  expect(contactsIn(found)).toEqual(people.map((one) => [one]))
})

test('an error of a number that is no object does not hide the others', () => {
  const found = ofEntries(entryOf(change({ errors: [{ code: 190 }, 'nonsense'] })))
  expect(found.items).toMatchObject([{ kind: 'change', part: { value: { errors: [{ code: 190 }] } } }])
})

test.each([
  ['deeper than what is read', `{"object":"whatsapp_business_account","entry":${'['.repeat(40)}${']'.repeat(40)}}`],
  ['no JSON', '{"object"'],
  ['another object', { object: 'page', entry: [] }],
  ['no entries', { object: 'whatsapp_business_account' }],
])('what is no callback of the platform has a fault, and is counted: %s', (_, body) => {
  const found = typeof body === 'string' ? splitCallback(Buffer.from(body)) : split(body)
  expect(found).toEqual({ items: [], others: [{ field: 'callback', reason: 'shape' }], fault: expect.any(String) })
})
