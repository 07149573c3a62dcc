import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, everywhere, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing, tellTeam } from '../testing/managing.ts'
import { freeNumber } from './identities.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const hourMs = 60 * 60 * 1000
const ago = (hours: number) => new Date(Date.now() - hours * hourMs).toISOString()
const both = { wa_id: '15550123456', bsuid: 'US.1' }

/** A contact known by its number and one known by bsuid, who wrote in 2 hours ago. */
async function twoContacts() {
  const number = await newNumber(directory.app)
  const phone = await number.open({ phone_number: '+15550123456' })
  const bsuid = await number.inbound({ bsuid: 'US.1', profile_name: 'Ana', username: 'ana.p', sent_at: ago(2) })
  return { number, phone, bsuid }
}

const identityUpdates = async (organizationId: string) =>
  (await eventsOf(directory, organizationId)).filter(({ type }) => type === 'contact.identity_updated')

test("the phone's contact survives with all names, and what it did not know is filled", async () => {
  const { number, phone, bsuid } = await twoContacts()
  const { contact } = await number.inbound(both)
  expect(contact).toEqual({ id: phone.contact.id, phone_number: '+15550123456', name: 'Ana' })
  expect(await number.getContact(contact.id)).toMatchObject({ bsuid: 'US.1', username: 'ana.p', name: 'Ana' })
  await expect(number.getContact(bsuid.contact.id)).rejects.toMatchObject({ failure: 'resource_not_found' })
  expect((await number.listContacts()).data.map(({ id }) => id)).toEqual([contact.id])
  expect((await number.open({ bsuid: 'US.1' })).contact.id).toBe(contact.id)
  expect((await number.inbound({ bsuid: 'US.1' })).contact.id).toBe(contact.id)
})

test('one event tells of the merge', async () => {
  const { number, phone } = await twoContacts()
  await number.inbound(both)
  expect(await identityUpdates(number.organizationId)).toMatchObject([
    {
      data: {
        contact: { id: phone.contact.id, phone_number: '+15550123456', name: 'Ana' },
        previous: { bsuid: null, parent_bsuid: null, phone_number: '+15550123456' },
        current: { bsuid: 'US.1', parent_bsuid: null, phone_number: '+15550123456' },
      },
    },
  ])
})

test('what the survivor learned by it is told as a change of the contact', async () => {
  const { number, phone } = await twoContacts()
  await number.inbound(both)
  const events = await eventsOf(directory, number.organizationId)
  expect(events.filter(({ type }) => type === 'contact.updated')).toMatchObject([
    { data: { contact: { id: phone.contact.id, name: 'Ana', changed_fields: ['name'] } } },
  ])
})

test('of two conversations one goes on with the window and the unread messages; the other stays readable', async () => {
  const { number, phone, bsuid } = await twoContacts()
  const sentAt = ago(1)
  expect((await number.inbound({ ...both, sent_at: sentAt })).conversation.id).toBe(phone.conversation.id)
  expect(await number.getConversation(phone.conversation.id)).toMatchObject({
    unread_count: 2,
    last_inbound_at: sentAt,
    last_message_at: sentAt,
  })
  expect(await number.getConversation(bsuid.conversation.id)).toMatchObject({
    contact: { id: phone.contact.id, phone_number: '+15550123456', name: 'Ana' },
    unread_count: 0,
  })
  const { data } = await number.listConversations({ contact_id: phone.contact.id })
  expect(data.map(({ id }) => id)).toEqual([phone.conversation.id, bsuid.conversation.id])
})

test('the conversation that goes on takes over the labels, each once, and the assignee, of whom is told', async () => {
  const { number, phone, bsuid } = await twoContacts()
  const managed = managing(directory.app, { ...number, teamId: number.state.team_id })
  await tellTeam(directory, number.organizationId, number.state.team_id)
  const [vip, paid, dead] = [await managed.label('VIP'), await managed.label('Paid'), await managed.label('Dead')]
  for (const { id } of [vip, paid, dead]) await managed.attachToConversation(bsuid.conversation.id, id)
  await managed.attachToConversation(phone.conversation.id, vip.id)
  await managed.deleteLabel(dead.id)
  await managed.updateConversation(bsuid.conversation.id, { assigned_to: 'ana' })
  const { conversation, labels } = await number.inbound(both)
  expect(conversation).toMatchObject({ id: phone.conversation.id, assigned_to: 'ana' })
  expect(labels.map(({ name }) => name)).toEqual(['VIP', 'Paid'])
  expect(await number.getConversation(conversation.id)).toMatchObject({ assignee: { id: 'ana' } })
  const attached =
    await directory.sql`select label_id from conversation_labels where conversation_id = ${conversation.id}`
  expect(attached).toHaveLength(2)
  const assigned = (await eventsOf(directory, number.organizationId)).filter(
    ({ type }) => type === 'conversation.assigned',
  )
  expect(assigned).toHaveLength(2)
  expect(assigned[1]).toMatchObject({
    data: {
      conversation: { id: conversation.id, object: 'conversation', phone_number_id: number.phoneNumberId },
      assignee: { user_id: 'ana', team_id: number.state.team_id, previous_user_id: null },
    },
  })
})

test('who is assigned already stays', async () => {
  const { number, phone, bsuid } = await twoContacts()
  const { updateConversation } = managing(directory.app, { ...number, teamId: number.state.team_id })
  await updateConversation(phone.conversation.id, { assigned_to: 'eva' })
  await updateConversation(bsuid.conversation.id, { assigned_to: 'ana' })
  expect((await number.inbound(both)).conversation.assigned_to).toBe('eva')
})

test('all conversations that show the survivor have changed', async () => {
  const { number, phone, bsuid } = await twoContacts()
  const ended = await number.inbound({ bsuid: 'US.0' })
  await number.inbound({ ...both, bsuid: 'US.0' })
  const show = () =>
    Promise.all([phone, bsuid, ended].map(({ conversation }) => number.getConversation(conversation.id)))
  const before = await show()
  await number.inbound(both)
  for (const [n, { contact, updated_at }] of (await show()).entries()) {
    expect(contact.name).toBe('Ana')
    expect(updated_at > (before[n]?.updated_at ?? '')).toBe(true)
  }
})

test('a contact that is gone holds nothing personal', async () => {
  const { number, bsuid } = await twoContacts()
  await number.inbound(both)
  const [row] = await directory.sql<{ text: string }[]>`
    select contacts::text as text from contacts where id = ${bsuid.contact.id}
  `
  expect(row?.text).not.toMatch(/Ana|ana.p|US.1/)
})

test('a survivor without a conversation takes over the other one', async () => {
  const { number, phone, bsuid } = await twoContacts()
  await directory.sql`delete from conversations where id = ${phone.conversation.id}`
  const { contact, conversation } = await number.inbound(both)
  expect([contact.id, conversation.id]).toEqual([phone.contact.id, bsuid.conversation.id])
  expect(await number.getConversation(conversation.id)).toMatchObject({ contact, unread_count: 2 })
})

test('labels, e-mail, metadata and the later word on marketing are kept', async () => {
  const { number, phone, bsuid } = await twoContacts()
  const label = newId('lbl')
  await directory.sql`
    insert into labels (organization_id, id, team_id, name, created_at, updated_at)
    values (${number.organizationId}, ${label}, 'team', 'VIP', now(), now())
  `
  await directory.sql`insert into contact_labels values (${number.organizationId}, ${bsuid.contact.id}, ${label}, ${number.phoneNumberId})`
  await directory.sql`
    update contacts set email = 'ana@example.com', metadata = '{"tier_name": "gold"}', marketing_preference = 'stop',
      marketing_preference_at = now()
    where id = ${bsuid.contact.id}
  `
  await directory.sql`
    update contacts set marketing_preference = 'resume', marketing_preference_at = now() - interval '1 day'
    where id = ${phone.contact.id}
  `
  const { contact, labels } = await number.inbound(both)
  expect(labels).toMatchObject([{ id: label }])
  expect(await number.getContact(contact.id)).toMatchObject({
    email: 'ana@example.com',
    metadata: { tier_name: 'gold' },
  })
  const send = number.open({ phone_number: '+15550123456' }, { marketing: true })
  await expect(send).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})

test('the survivor’s own word on marketing holds when it is the later one', async () => {
  const { number, phone, bsuid } = await twoContacts()
  await directory.sql`
    update contacts set marketing_preference = case id when ${phone.contact.id} then 'stop' else 'resume' end,
      marketing_preference_at = now() - case id when ${phone.contact.id} then interval '1 day' else interval '2 days' end
    where id in (${phone.contact.id}, ${bsuid.contact.id})
  `
  await number.inbound(both)
  const send = number.open({ phone_number: '+15550123456' }, { marketing: true })
  await expect(send).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})

test('a deleted label of the other is none of the survivor’s, and no change of it', async () => {
  const { number, phone, bsuid } = await twoContacts()
  const managed = managing(directory.app, { ...number, teamId: number.state.team_id })
  await tellTeam(directory, number.organizationId, number.state.team_id)
  const { id } = await managed.label('Dead')
  await managed.attach(bsuid.contact.id, id)
  await managed.deleteLabel(id)
  await number.inbound(both)
  const changes = (await eventsOf(directory, number.organizationId)).filter(({ type }) => type === 'contact.updated')
  expect(changes.at(-1)).toMatchObject({ data: { contact: { id: phone.contact.id, changed_fields: ['name'] } } })
})

test('names and labels of a third one stay its own', async () => {
  const { number, bsuid } = await twoContacts()
  const managed = managing(directory.app, { ...number, teamId: number.state.team_id })
  await tellTeam(directory, number.organizationId, number.state.team_id)
  const third = await number.inbound({ wa_id: '15550123457' })
  const [merged, own, ofThread] = [await managed.label('A'), await managed.label('B'), await managed.label('C')]
  await managed.attach(bsuid.contact.id, merged.id)
  await managed.attach(third.contact.id, own.id)
  await managed.attachToConversation(third.conversation.id, ofThread.id)
  expect((await number.inbound(both)).labels).toMatchObject([{ id: merged.id }])
  expect(await number.inbound({ wa_id: '15550123457' })).toMatchObject({
    contact: { id: third.contact.id },
    labels: [{ id: own.id }, { id: ofThread.id }],
  })
})

test('parallel messages that name both merge them once, while others are recorded', async () => {
  const { number, phone, bsuid } = await twoContacts()
  const calls = everywhere(directory, number, 20).flatMap(({ inbound }) => [
    inbound(both),
    inbound({ bsuid: 'US.1' }),
    inbound({ wa_id: '15550123456' }),
  ])
  await Promise.all(calls)
  expect(await identityUpdates(number.organizationId)).toHaveLength(1)
  expect((await number.listContacts()).data.map(({ id }) => id)).toEqual([phone.contact.id])
  const unread = await Promise.all(
    [phone, bsuid].map(async ({ conversation }) => (await number.getConversation(conversation.id)).unread_count),
  )
  expect(unread).toEqual([61, 0])
})

test('three contacts become one', async () => {
  const { number, phone } = await twoContacts()
  const third = await number.open({ phone_number: '+15550777777' })
  // The platform writes that number as the first one's.
  await directory.sql`
    insert into identities (organization_id, phone_number_id, kind, value, contact_id)
    values (${number.organizationId}, ${number.phoneNumberId}, 'wa_id', '15550123456', ${third.contact.id})
  `
  expect((await number.inbound(both)).contact.id).toBe(phone.contact.id)
  expect((await number.open({ phone_number: '+15550777777' })).contact.id).toBe(phone.contact.id)
  expect((await number.listContacts()).data).toHaveLength(1)
})

test('who gives up the number meanwhile is not merged with whoever has it now', async () => {
  const { number, phone, bsuid } = await twoContacts()
  let merging: ReturnType<typeof number.inbound> | undefined
  await directory.sql.begin(async (tx) => {
    const origin = { ...number, traceparent: '' }
    await tx`update contacts set phone_number = '+15550777777' where id = ${phone.contact.id}`
    merging = number.inbound(both)
    await untilSomebodyWaits(directory.sql)
    await freeNumber(tx, origin, phone.contact.id, '+15550123456')
  })
  expect((await merging)?.contact.id).toBe(bsuid.contact.id)
  expect(await number.getContact(phone.contact.id)).toMatchObject({ phone_number: '+15550777777', bsuid: null })
  expect(await number.getContact(bsuid.contact.id)).toMatchObject({ phone_number: '+15550123456', bsuid: 'US.1' })
})

test('a number that somebody else has meanwhile is of nobody who is merged', async () => {
  const { number, phone, bsuid } = await twoContacts()
  const third = await number.inbound({ bsuid: 'US.3' })
  let merging: ReturnType<typeof number.inbound> | undefined
  await directory.sql.begin(async (tx) => {
    await tx`update contacts set phone_number = '+15550777777' where id = ${phone.contact.id}`
    merging = number.inbound(both)
    await untilSomebodyWaits(directory.sql)
    await tx`update identities set contact_id = ${third.contact.id} where contact_id = ${phone.contact.id}`
    await tx`update contacts set phone_number = '+15550123456' where id = ${third.contact.id}`
  })
  expect((await merging)?.contact.id).toBe(third.contact.id)
  expect(await number.getContact(phone.contact.id)).toMatchObject({ phone_number: '+15550777777', bsuid: null })
  await expect(number.getContact(bsuid.contact.id)).rejects.toMatchObject({ failure: 'resource_not_found' })
})
