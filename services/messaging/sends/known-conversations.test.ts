import { newId } from '@app/shared/values/ids.ts'
import { expect, test } from 'vitest'
import { createKnownConversations } from './known-conversations.ts'

const number = { organizationId: newId('org'), phoneNumberId: '106540352242922' }
const to = '+15550123456'

const conversationOf = (contactId: string) => ({
  parties: {
    conversation: { id: newId('cnv'), status: 'open' as const, assigned_to: null },
    contact: { id: contactId, phone_number: to, name: 'Ana' },
  },
  windowUntilMs: Date.now() + 60_000,
})

test('what was named a moment ago is known, with an open window alone where that is asked', () => {
  const known = createKnownConversations()
  const conversation = { ...conversationOf(newId('ctc')), windowUntilMs: 0 }
  known.remember(number, to, conversation)
  expect(known.find(number, to, 'any')).toBe(conversation)
  expect(known.find(number, to, 'open')).toBeUndefined()
  expect(known.find({ ...number, organizationId: newId('org') }, to, 'any')).toBeUndefined()
})

test.each(['contact', 'conversation'] as const)('a %s that changed is not known any more', (party) => {
  const known = createKnownConversations()
  const changed = conversationOf(newId('ctc'))
  known.remember(number, to, changed)
  known.doubt([changed.parties[party].id])
  expect(known.find(number, to, 'any')).toBeUndefined()
})

test('an answer from before the change that comes after it is not taken, and one of another contact is', () => {
  const known = createKnownConversations()
  const contactId = newId('ctc')
  known.doubt([contactId])
  known.remember(number, to, conversationOf(contactId))
  expect(known.find(number, to, 'any')).toBeUndefined()
  const another = conversationOf(newId('ctc'))
  known.remember(number, to, another)
  expect(known.find(number, to, 'open')).toBe(another)
})
