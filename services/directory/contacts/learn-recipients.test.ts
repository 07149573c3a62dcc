import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
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

test('who was given the number as the platform writes it is the one that was written to, too', async () => {
  const number = await newNumber(directory.app)
  await number.open({ phone_number: `+${written}` })
  const { contact, conversation } = await number.open({ phone_number: given })
  await learnRecipients(directory.app, [recipientOf(number)])
  expect((await number.listContacts()).data).toMatchObject([{ id: contact.id, phone_number: given }])
  expect(await number.getConversation(conversation.id)).toMatchObject({ status: 'open' })
})

/** Contacts that were written to, and how the platform writes their numbers. */
async function many() {
  const number = await newNumber(directory.app)
  const people = Array.from({ length: 30 }, (_, n) => `9876${50_000 + n}`)
  const recipients = people.map((person) => ({
    ...recipientOf(number),
    phoneNumber: `+55119${person.slice(1)}`,
    waId: `5511${person.slice(1)}`,
  }))
  for (const { phoneNumber } of recipients) await number.open({ phone_number: phoneNumber })
  return { number, recipients }
}

test('many recipients are looked up together', async () => {
  const { number, recipients } = await many()
  let [looking, most] = [0, 0]
  const lookUp: typeof directory.app.lookUp = async (question) => {
    most = Math.max(most, ++looking)
    return directory.app.lookUp(question).finally(() => looking--)
  }
  await learnRecipients({ ...directory.app, lookUp }, recipients)
  expect(most).toBe(recipients.length)
  for (const { phoneNumber, waId } of recipients)
    expect((await number.inbound({ wa_id: waId })).contact).toMatchObject({ phone_number: phoneNumber })
})

test('what many are known by leaves connections for others while it is written', async () => {
  const { recipients } = await many()
  let isLearned = false
  const learned = await directory.sql.begin(async (tx) => {
    await tx`lock table contacts in share row exclusive mode`
    const learning = learnRecipients(directory.app, recipients).finally(() => (isLearned = true))
    await untilSomebodyWaits(tx)
    await directory.sql`select 1`
    expect(isLearned).toBe(false)
    return { learning }
  })
  await learned.learning
})
