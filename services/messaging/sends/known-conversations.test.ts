import { newId } from '@app/shared/values/ids.ts'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createKnownConversations } from './known-conversations.ts'

const number = { organizationId: newId('org'), phoneNumberId: '106540352242922' }
const to = '+15550123456'

/** Since when directory is heard without a gap. */
let wholeSince = -Infinity
const newMemory = () => createKnownConversations({ wholeSince: () => wholeSince })
let known = newMemory()
beforeEach(() => {
  // Not the date: identifiers that are minted then would be ahead for the other files.
  vi.useFakeTimers({ toFake: ['performance'] })
  wholeSince = -Infinity
  known = newMemory()
})
afterEach(() => {
  vi.useRealTimers()
})

const pass = (seconds: number) => vi.advanceTimersByTime(seconds * 1000)

const conversationOf = (contactId = newId('ctc')) => ({
  parties: {
    conversation: { id: newId('cnv'), status: 'open' as const, assigned_to: null },
    contact: { id: contactId, phone_number: to, name: 'Ana' },
  },
  windowUntilMs: Date.now() + 3_600_000,
})
type Conversation = ReturnType<typeof conversationOf>

/** Answered at once. */
const answer = (conversation: Conversation) => known.remember(number, to, conversation, performance.now())
const found = () => known.find(number, to, 'any')?.parties.contact.id

test('what was named is known, with an open window alone where that is asked', () => {
  const conversation = { ...conversationOf(), windowUntilMs: Date.now() }
  answer(conversation)
  expect(known.find(number, to, 'any')).toMatchObject(conversation)
  expect(known.find(number, to, 'open')).toBeUndefined()
  expect(known.find({ ...number, organizationId: newId('org') }, to, 'any')).toBeUndefined()
})

test('it is known for ten minutes while directory is heard, and for ten seconds while something may have been missed', () => {
  answer(conversationOf())
  pass(599)
  expect(found()).toBeDefined()
  pass(2)
  expect(found()).toBeUndefined()

  answer(conversationOf())
  pass(9)
  wholeSince = performance.now()
  expect(found()).toBeDefined()
  pass(2)
  expect(found()).toBeUndefined()

  answer(conversationOf())
  pass(60)
  expect(found()).toBeDefined()
})

test('what was asked for before something was missed is not trusted for longer by being answered afterwards', () => {
  const askedAt = performance.now()
  pass(1)
  wholeSince = performance.now()
  known.remember(number, to, conversationOf(), askedAt)
  expect(found()).toBeDefined()
  pass(11)
  expect(found()).toBeUndefined()
})

test.each(['contact', 'conversation'] as const)(
  'a %s that changed is not known any more, however long ago',
  (party) => {
    const changed = conversationOf()
    answer(changed)
    known.doubt([changed.parties[party].id])
    expect(found()).toBeUndefined()
    pass(300)
    expect(found()).toBeUndefined()
  },
)

test('an answer asked for before the change, or soon after it, is not taken; a later one is, and one of another contact', () => {
  const contactId = newId('ctc')
  const askedAt = performance.now()
  known.doubt([contactId])
  known.remember(number, to, conversationOf(contactId), askedAt)
  expect(found()).toBeUndefined()
  pass(19)
  answer(conversationOf(contactId))
  pass(60)
  expect(found()).toBeUndefined()
  answer(conversationOf(contactId))
  expect(found()).toBe(contactId)
  const another = conversationOf()
  known.doubt([contactId])
  answer(another)
  expect(found()).toBe(another.parties.contact.id)
})

test('a contact who writes opens the window of what is known; what was said then by itself is trusted for seconds only', () => {
  const conversation = { ...conversationOf(), windowUntilMs: 0 }
  answer(conversation)
  const windowUntilMs = Date.now() + 60_000
  const renamed = { ...conversation.parties.contact, name: 'as it was called then' }
  const inbound = { windowUntilMs, parties: { ...conversation.parties, contact: renamed } }
  known.noteInbound(number, to, inbound)
  expect(known.find(number, to, 'open')).toMatchObject({ parties: conversation.parties, windowUntilMs })
  known.noteInbound(number, to, { ...inbound, windowUntilMs: 1 })
  expect(known.find(number, to, 'open')).toMatchObject({ windowUntilMs })

  const other = conversationOf()
  known.noteInbound(number, to, other)
  expect(found()).toBe(other.parties.contact.id)
  pass(11)
  expect(found()).toBeUndefined()
})

test('what was said then of a contact that changed is not taken', () => {
  const contactId = newId('ctc')
  known.doubt([contactId])
  pass(60)
  known.noteInbound(number, to, conversationOf(contactId))
  expect(found()).toBeUndefined()
})

test('more changes than are remembered leave no contact trusted that may be among them', () => {
  const changed = conversationOf()
  answer(changed)
  known.doubt([changed.parties.contact.id])
  pass(1)
  known.doubt(Array.from({ length: 50_000 }, (_, n) => `ctc_${n}`))
  pass(10)
  expect(found()).toBeUndefined()
  pass(10)
  answer(conversationOf())
  pass(60)
  expect(found()).toBeDefined()
})
