import { updateContact } from '@app/shared/contracts/contacts.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { managing, tellTeam } from '../testing/managing.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const metadata = { plan: 'gold', seats: { a: 1, b: [1, 2] } }

async function newContact() {
  const number = await newNumber(directory.app)
  const managed = { ...number, ...managing(directory.app, { ...number, teamId: number.state.team_id }) }
  const { contact, conversation } = await number.inbound({ wa_id: '15550123456', profile_name: 'Ana' })
  await managed.update(contact.id, { email: 'ana@example.com', metadata })
  await directory.sql`delete from outbox where headers ->> 'organization' = ${number.organizationId}`
  return { number: managed, id: contact.id, conversationId: conversation.id }
}

test('an event names the fields that really changed', async () => {
  const { number, id } = await newContact()
  const after = await number.update(id, { name: 'Ana P.', email: 'ana@example.com', metadata: { plan: 'gold' } })
  expect(after).toMatchObject({ name: 'Ana P.', email: 'ana@example.com', metadata: { plan: 'gold' } })
  expect(await eventsOf(directory, number.organizationId)).toMatchObject([
    {
      type: 'contact.updated',
      data: {
        contact: {
          id,
          object: 'contact',
          phone_number: '+15550123456',
          name: 'Ana P.',
          email: 'ana@example.com',
          metadata: { plan: 'gold' },
          phone_number_id: number.phoneNumberId,
          created_at: after.created_at,
          updated_at: after.updated_at,
          changed_fields: ['name', 'metadata'],
        },
      },
    },
  ])
})

test('what is the same already changes nothing: no event, the same updated_at', async () => {
  const { number, id } = await newContact()
  const before = await number.getContact(id)
  const sameMetadata = { seats: { b: [1, 2], a: 1 }, plan: 'gold' }
  expect(await number.update(id, {})).toEqual(before)
  expect(await number.update(id, { name: 'Ana', email: 'ana@example.com', metadata: sameMetadata })).toEqual(before)
  expect(await eventsOf(directory, number.organizationId)).toEqual([])
})

test('a change that waited for another one keeps it', async () => {
  const { number, id } = await newContact()
  const { updating } = await directory.sql.begin(async (tx) => {
    await tx`update contacts set email = 'new@example.com' where id = ${id}`
    const updating = number.update(id, { name: 'Bo' })
    await untilSomebodyWaits(directory.sql)
    return { updating }
  })
  expect(await updating).toMatchObject({ name: 'Bo', email: 'new@example.com' })
})

test('null clears name and metadata', async () => {
  const { number, id } = await newContact()
  expect(await number.update(id, { name: null, metadata: null })).toMatchObject({ name: null, metadata: null })
})

test('a name that a message brings is a change, once', async () => {
  const number = await newNumber(directory.app)
  const { contact } = await number.open({ phone_number: '+15550123456' })
  for (let n = 0; n < 2; n++) await number.inbound({ wa_id: '15550123456', profile_name: 'Ana' })
  const events = await eventsOf(directory, number.organizationId)
  expect(events.map(({ type }) => type)).toEqual(['contact.created', 'contact.updated'])
  expect(events[1]).toMatchObject({ data: { contact: { id: contact.id, name: 'Ana', changed_fields: ['name'] } } })
})

test('of many parallel changes to one value only one is a change', async () => {
  const { number, id } = await newContact()
  await Promise.all(Array.from({ length: 50 }, () => number.update(id, { name: 'Eva' })))
  expect(await eventsOf(directory, number.organizationId)).toHaveLength(1)
})

test.each([
  [{ phone_number: '+15550123456' }, 'phone_number'],
  [{ phone_number: null }, 'phone_number'],
  [{ name: '' }, 'name'],
  [{ name: '𝒳'.repeat(201) }, 'name'],
  [{ email: 'nobody' }, 'email'],
  [{ email: null }, 'email'],
  [{ email: `${'a'.repeat(250)}@b.com` }, 'email'],
  [{ metadata: [] }, 'metadata'],
  [{ metadata: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [n, n])) }, 'metadata'],
  [{ metadata: { text: 'x'.repeat(16 * 1024) } }, 'metadata'],
])('refuses body %#', (body, param) => {
  expect(updateContact.body.safeParse(body).error?.issues[0]?.path).toEqual([param])
})

test('a deleted contact is gone, its conversation stays, and the next message makes a new one', async () => {
  const { number, id, conversationId } = await newContact()
  const before = await number.getConversation(conversationId)
  await tellTeam(directory, number.organizationId, number.state.team_id)
  const label = await number.label('VIP')
  await number.attach(id, label.id)
  expect((await number.remove(id)).data).toEqual({ id, object: 'contact', deleted: true })
  const gone = { failure: 'resource_not_found' }
  for (const ask of [
    () => number.getContact(id),
    () => number.remove(id),
    () => number.update(id, {}),
    () => number.attach(id, label.id),
  ]) {
    await expect(ask()).rejects.toMatchObject(gone)
  }
  expect((await number.listContacts()).data).toEqual([])
  expect((await number.listContacts({ phone_number: '+15550123456' })).data).toEqual([])
  expect((await number.listContacts({ label_id: label.id })).data).toEqual([])
  const after = await number.getConversation(conversationId)
  expect(after).toMatchObject({
    contact: { id, phone_number: null, name: null },
    last_inbound_at: before.last_inbound_at,
  })
  expect(after.updated_at > before.updated_at).toBe(true)
  const again = await number.inbound({ wa_id: '15550123456', profile_name: 'Ana' })
  expect(again.contact.id).not.toBe(id)
  expect(again.conversation.id).not.toBe(conversationId)
})

test('a new name is a change of the conversation, which shows it, and of no other', async () => {
  const { number, id, conversationId } = await newContact()
  const { conversation: another } = await number.inbound({ wa_id: '15550199999' })
  const before = await number.getConversation(conversationId)
  const anotherBefore = await number.getConversation(another.id)
  await number.update(id, { name: 'Eva' })
  const after = await number.getConversation(conversationId)
  expect(after.contact.name).toBe('Eva')
  expect(after.updated_at > before.updated_at).toBe(true)
  expect(await number.getConversation(another.id)).toEqual(anotherBefore)
})

test('a number that a message brings is a change of the conversations, which show it', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.inbound({ bsuid: 'US.1' })
  // The message itself changes only the conversation that goes on.
  await directory.sql`update conversations set merged_into = id where id = ${conversation.id}`
  const before = await number.getConversation(conversation.id)
  await number.inbound({ bsuid: 'US.1', wa_id: '15550123456' })
  const after = await number.getConversation(conversation.id)
  expect(after.contact).toEqual({ id: contact.id, phone_number: '+15550123456', name: null })
  expect(after.updated_at > before.updated_at).toBe(true)
})

test('deleting leaves nothing personal behind', async () => {
  const { number, id } = await newContact()
  await tellTeam(directory, number.organizationId, number.state.team_id)
  await number.attach(id, (await number.label('VIP')).id)
  await number.remove(id)
  expect(await directory.sql`select from contact_labels where contact_id = ${id}`).toHaveLength(0)
  const [row] = await directory.sql<{ text: string }[]>`select contacts::text as text from contacts where id = ${id}`
  expect(row?.text).not.toMatch(/Ana|ana@|15550123456|gold/)
})

test('deleting takes no names and no labels of others along', async () => {
  const { number, id } = await newContact()
  await tellTeam(directory, number.organizationId, number.state.team_id)
  const other = await number.inbound({ wa_id: '15550123457' })
  const label = await number.label('VIP')
  await number.attach(other.contact.id, label.id)
  await number.remove(id)
  expect(await number.inbound({ wa_id: '15550123457' })).toMatchObject({
    contact: { id: other.contact.id },
    labels: [{ id: label.id }],
  })
})

test('who wanted no marketing is still not sent any after the contact was deleted, until the person resumes', async () => {
  const { number } = await newContact()
  const ana = { phone_number: '+15550188001' }
  const marketing = { marketing: true, window: 'any' } as const
  const { contact } = await number.open(ana)
  await directory.sql`update contacts set marketing_preference = 'stop', marketing_preference_at = now() where id = ${contact.id}`
  await number.remove(contact.id)
  await expect(number.open(ana, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
  const again = await number.open(ana, { window: 'any' })
  expect(again.contact.id).not.toBe(contact.id)
  await expect(number.open(ana, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
  await directory.sql`update contacts set marketing_preference = 'resume', marketing_preference_at = now() where id = ${again.contact.id}`
  await number.open(ana, marketing)
  await number.remove(again.contact.id)
  await number.open(ana, marketing)
  const kept = await directory.sql`select * from remembered_stops where organization_id = ${number.organizationId}`
  expect(kept).toEqual([])
})

test('a change never bears an earlier time than what it changes, though the clock of who made that was ahead', async () => {
  const { number, id } = await newContact()
  const { sql } = directory
  await tellTeam(directory, number.organizationId, number.state.team_id)
  const label = await number.label('VIP')
  const [ahead] = await sql<{ updatedAt: Date }[]>`
    update contacts set updated_at = now() + interval '1 minute' where id = ${id} returning updated_at
  `
  await sql`update labels set updated_at = ${ahead?.updatedAt ?? null} where id = ${label.id}`
  await number.update(id, { name: 'Ana P.' })
  await number.attach(id, label.id)
  await number.inbound({ wa_id: '15550123456', bsuid: 'US.1' })
  const { contact } = await number.inbound({ bsuid: 'US.2' })
  await number.inbound({ wa_id: '15550123456', bsuid: 'US.2' })
  expect(contact.id).not.toBe(id)
  await telling(directory.app, number).change('1', { bsuid: 'US.2' }, { bsuid: 'US.3' })
  const at = ahead?.updatedAt.toISOString()
  const told = await eventsOf(directory, number.organizationId)
  const updates = told.filter(({ type }) => type === 'contact.updated')
  expect(updates).toMatchObject([{ data: { contact: { updated_at: at } } }, { data: { contact: { updated_at: at } } }])
  expect(await number.getContact(id)).toMatchObject({ name: 'Ana P.', bsuid: 'US.3', updated_at: at })
  expect(await number.updateLabel(label.id, { color: 'blue' })).toMatchObject({ updated_at: at })
})
