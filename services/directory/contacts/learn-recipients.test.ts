import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, everywhere, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { learnRecipients } from './learn-recipients.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const given = '+5511987654321'
const written = '551187654321'

const recipientOf = ({ organizationId, phoneNumberId }: { organizationId: string; phoneNumberId: string }) => ({
  organizationId,
  phoneNumberId,
  traceparent: '',
  phoneNumber: given,
  waId: written,
  sentAt: new Date(),
})

test('a contact that was deleted meanwhile is not made again', async () => {
  const number = await newNumber(directory.app)
  await learnRecipients(directory.app, [recipientOf(number)])
  expect((await number.listContacts()).data).toEqual([])
})

test('the first reply is of the contact that was written to, however the platform writes its number', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.open({ phone_number: given })
  await learnRecipients(directory.app, [recipientOf(number), recipientOf(number)])
  const reply = await number.inbound({ wa_id: written, profile_name: 'Ana' })
  expect(reply).toMatchObject({ contact: { id: contact.id, phone_number: given }, conversation })
  expect((await number.listContacts()).data).toHaveLength(1)
})

test('who was a contact of its own in the address book, and replied, becomes the one that was written to', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.open({ phone_number: given })
  const entry = { wa_id: written, name: 'Ana', action: 'add' as const, at: new Date().toISOString() }
  await telling(directory.app, number).contacts([entry])
  const reply = await number.inbound({ wa_id: written })
  expect(reply.contact.id).not.toBe(contact.id)
  await Promise.all(
    everywhere(directory, number, 3).map(() => learnRecipients(directory.newInstance(), [recipientOf(number)])),
  )
  expect((await number.listContacts()).data).toMatchObject([{ id: contact.id, phone_number: given, name: 'Ana' }])
  expect(await number.getConversation(conversation.id)).toMatchObject({ unread_count: 1 })
  const subjects = (await eventsOf(directory, number.organizationId)).map(({ subject }) => subject)
  expect(subjects.filter((subject) => subject.endsWith('identity-updated'))).toHaveLength(1)
})
