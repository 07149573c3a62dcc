import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { asking, testDirectory, type TestDirectory } from '../testing/app.ts'
import { at } from '../testing/moments.ts'
import { newToldNumber } from '../testing/told.ts'

// Messaging sends by what it remembers of contacts and conversations, until it is told.

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const ana = '15550123456'
let number: Awaited<ReturnType<typeof newTold>>
const newTold = () => newToldNumber(directory.app)
beforeEach(async () => {
  number = await newTold()
  directory.changed.length = 0
})

test('a deletion is told', async () => {
  const { contact } = await number.inbound({ wa_id: ana })
  await number.remove(contact.id)
  expect(directory.changed).toEqual([contact.id])
})

test('a merge is told of both contacts', async () => {
  const phone = await number.open({ phone_number: `+${ana}` })
  const bsuid = await number.inbound({ bsuid: 'US.1' })
  await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  expect(directory.changed).toEqual(expect.arrayContaining([phone.contact.id, bsuid.contact.id]))
})

test('a name is told, whoever gave it, and what sends do not show is not', async () => {
  const { contact } = await number.inbound({ wa_id: ana, profile_name: 'Ana' })
  await number.update(contact.id, { email: 'ana@example.com' })
  await number.inbound({ wa_id: ana, profile_name: 'Ana', bsuid: 'US.1' })
  expect(directory.changed).toEqual([])
  await number.update(contact.id, { name: 'Ana P.' })
  await number.update(contact.id, { name: null })
  await number.inbound({ wa_id: ana, profile_name: 'Eva' })
  expect(directory.changed).toEqual([contact.id, contact.id, contact.id])
})

test('a new number is told', async () => {
  const { contact } = await number.inbound({ wa_id: ana })
  await number.change('1', { wa_id: ana }, { wa_id: '15550123457' })
  expect(directory.changed).toEqual([contact.id])
})

test('a status and an assignee are told', async () => {
  const { conversation } = await number.inbound({ wa_id: ana })
  await number.updateConversation(conversation.id, { status: 'resolved' })
  await number.updateConversation(conversation.id, { assigned_to: 'ana' })
  expect(directory.changed).toEqual([conversation.id, conversation.id])
})

test('a conversation that a message reopens is told, and one that was open is not', async () => {
  const { conversation } = await number.inbound({ wa_id: ana })
  await number.inbound({ wa_id: ana })
  expect(directory.changed).toEqual([])
  await number.updateConversation(conversation.id, { status: 'resolved' })
  directory.changed.length = 0
  const message = { wa_id: ana, upstream_id: 'wamid.REOPENS' }
  await number.inbound(message)
  await number.inbound(message)
  expect(directory.changed).toEqual([conversation.id])
})

test('a message that may have reopened a conversation is told, though recording it failed', async () => {
  const { conversation } = await number.inbound({ wa_id: ana })
  const { app } = directory
  const failing = { ...app, insertInbound: () => Promise.reject(new Error('the answer was lost')) }
  const asker = asking(failing, number.organizationId, number.phoneNumberId)
  await expect(asker.inbound({ wa_id: ana })).rejects.toThrow('the answer was lost')
  expect(directory.changed).toEqual([conversation.id])
})

test('what an address book names and takes away is told', async () => {
  const entry = (action: 'add' | 'remove', second: number, name: string | null) => ({
    wa_id: ana,
    name,
    action,
    at: at(second),
  })
  await number.contacts([entry('add', 1, null)])
  expect(directory.changed).toEqual([])
  await number.contacts([entry('add', 2, 'Ana')])
  await number.contacts([entry('remove', 3, null)])
  const [id] = directory.changed
  expect(id).toMatch(/^ctc_/)
  expect(directory.changed).toEqual([id, id])
})
