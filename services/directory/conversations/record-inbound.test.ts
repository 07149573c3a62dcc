import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgetContacts } from '../contacts/forget-contacts.ts'
import { asking, eventsOf, everywhere, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { insertInbounds, sweepInbounds } from './insert-inbounds.ts'
import { touchConversations } from './touch-conversations.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const hourMs = 60 * 60 * 1000
const ago = (hours: number) => new Date(Date.now() - hours * hourMs).toISOString()
const later = (time: string, hours: number) => new Date(Date.parse(time) + hours * hourMs).toISOString()
const ana = { wa_id: '15550123456', bsuid: 'US.1', profile_name: 'Ana', username: 'ana.p', parent_bsuid: 'US.ENT.9' }

const resolve = (id: string) => directory.sql`update conversations set status = 'resolved' where id = ${id}`
const subjectsOf = async (organizationId: string) =>
  (await eventsOf(directory, organizationId)).map(({ subject }) => subject)

test('a stranger becomes a contact with its name, a conversation and an event', async () => {
  const number = await newNumber(directory.app)
  const sentAt = ago(1)
  const { contact, conversation, ...rest } = await number.inbound({ ...ana, sent_at: sentAt })
  expect(contact).toEqual({ id: expect.any(String), phone_number: '+15550123456', name: 'Ana' })
  expect(conversation).toEqual({ id: expect.any(String), status: 'open', assigned_to: null })
  expect(rest).toEqual({ window_until: later(sentAt, 24), labels: [] })
  expect(await number.getContact(contact.id)).toMatchObject({
    phone_number: '+15550123456',
    name: 'Ana',
    bsuid: 'US.1',
    parent_bsuid: 'US.ENT.9',
    username: 'ana.p',
  })
  expect(await number.getConversation(conversation.id)).toMatchObject({
    contact,
    unread_count: 1,
    last_message_at: sentAt,
    last_inbound_at: sentAt,
  })
  expect(await eventsOf(directory, number.organizationId)).toMatchObject([
    { type: 'contact.created', data: { contact: { ...contact, phone_number_id: number.phoneNumberId } } },
  ])
})

test('a stranger without a number is known by bsuid alone', async () => {
  const number = await newNumber(directory.app)
  const { contact } = await number.inbound({ bsuid: 'US.1' })
  expect(contact).toMatchObject({ phone_number: null, name: null })
  expect((await number.inbound({ bsuid: 'US.1' })).contact).toEqual(contact)
})

test('a message from nobody is refused', async () => {
  const number = await newNumber(directory.app)
  await expect(number.inbound({})).rejects.toMatchObject({ failure: 'invalid_field_value', param: 'wa_id' })
})

test('the same message again changes nothing and answers the same', async () => {
  const number = await newNumber(directory.app)
  const message = { ...ana, upstream_id: 'wamid.A', sent_at: ago(2) }
  const first = await number.inbound(message)
  await number.inbound({ ...ana, sent_at: ago(1) })
  await resolve(first.conversation.id)
  const before = await number.getConversation(first.conversation.id)
  expect(await number.inbound({ ...message, profile_name: 'Someone', message_id: newId('msg') })).toEqual(first)
  expect(await number.getConversation(first.conversation.id)).toEqual(before)
  expect(before).toMatchObject({ unread_count: 2, status: 'resolved' })
})

test('a message that was recorded makes no new contact after its contact was deleted', async () => {
  const number = await newNumber(directory.app)
  const message = { ...ana, upstream_id: 'wamid.A' }
  const first = await number.inbound(message)
  await directory.sql`delete from identities where contact_id = ${first.contact.id}`
  await directory.sql`update contacts set deleted_at = now() where id = ${first.contact.id}`
  expect(await number.inbound(message)).toEqual(first)
  expect(await subjectsOf(number.organizationId)).toHaveLength(1)
})

test('50 parallel calls with the same message count it once', async () => {
  const number = await newNumber(directory.app)
  const known = await number.inbound(ana)
  const message = { ...ana, upstream_id: 'wamid.A' }
  const calls = everywhere(directory, number, 10).flatMap(({ inbound }) => [1, 2, 3, 4, 5].map(() => inbound(message)))
  const answers = await Promise.all(calls)
  for (const answer of answers) expect(answer).toEqual(answers[0])
  expect(await number.getConversation(known.conversation.id)).toMatchObject({ unread_count: 2 })
})

test('hundreds of parallel messages of few people are all counted, and the newest counts', async () => {
  const number = await newNumber(directory.app)
  const newest = ago(0.5)
  const messages = Array.from({ length: 400 }, (_, n) => ({
    wa_id: `1555012${3000 + (n % 8)}`,
    sent_at: n >= 8 && n < 16 ? newest : ago(1 + n / 100),
    counts_unread: n % 4 !== 0,
  }))
  const instances = everywhere(directory, number, 4)
  await Promise.all(instances.flatMap(({ inbound }, i) => messages.filter((_, n) => n % 4 === i).map(inbound)))
  const { data } = await number.listConversations()
  expect(data).toHaveLength(8)
  for (const conversation of data)
    expect(conversation).toMatchObject({ last_inbound_at: newest, last_message_at: newest })
  expect(data.reduce((sum, { unread_count: unread }) => sum + unread, 0)).toBe(300)
  expect(await subjectsOf(number.organizationId)).toHaveLength(8)
})

test('an older message that comes late does not move the window back', async () => {
  const number = await newNumber(directory.app)
  const newest = ago(1)
  await number.inbound({ ...ana, sent_at: newest })
  const { conversation, window_until: until } = await number.inbound({ ...ana, sent_at: ago(20) })
  expect(until).toBe(later(newest, 24))
  expect(await number.getConversation(conversation.id)).toMatchObject({
    last_inbound_at: newest,
    last_message_at: newest,
    unread_count: 2,
  })
})

test('a message from the future counts as sent now', async () => {
  const number = await newNumber(directory.app)
  const { conversation } = await number.inbound({ ...ana, sent_at: '2100-01-01T00:00:00.000Z' })
  const { last_inbound_at: at } = await number.getConversation(conversation.id)
  expect(Math.abs(Date.parse(at ?? '') - Date.now())).toBeLessThan(60_000)
})

test('a reaction is recorded and not counted as unread', async () => {
  const number = await newNumber(directory.app)
  const { conversation } = await number.inbound({ ...ana, counts_unread: false })
  expect(await number.getConversation(conversation.id)).toMatchObject({
    unread_count: 0,
    last_inbound_at: expect.any(String),
  })
})

test('a resolved conversation is reopened, a pending one stays', async () => {
  const number = await newNumber(directory.app)
  const { conversation } = await number.inbound(ana)
  await resolve(conversation.id)
  expect((await number.inbound(ana)).conversation).toMatchObject({ id: conversation.id, status: 'open' })
  expect(await number.getConversation(conversation.id)).toMatchObject({ status: 'open' })
  await directory.sql`update conversations set status = 'pending', assigned_to = 'usr_7' where id = ${conversation.id}`
  expect((await number.inbound(ana)).conversation).toMatchObject({ status: 'pending', assigned_to: 'usr_7' })
  expect(await number.getConversation(conversation.id)).toMatchObject({
    status: 'pending',
    assignee: { id: 'usr_7', name: null, email: null },
  })
})

test("the contact's labels and the conversation's are answered once each", async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.inbound(ana)
  const [vip, late] = [newId('lbl'), newId('lbl')]
  for (const [id, name] of [
    [vip, 'VIP'],
    [late, 'Late'],
  ] as const) {
    await directory.sql`
      insert into labels (organization_id, id, team_id, name, color, created_at, updated_at)
      values (${number.organizationId}, ${id}, 'team', ${name}, 'red', now(), now())
    `
    await directory.sql`insert into conversation_labels values (${number.organizationId}, ${conversation.id}, ${id})`
  }
  await directory.sql`insert into contact_labels values (${number.organizationId}, ${contact.id}, ${vip}, ${number.phoneNumberId})`
  expect((await number.inbound(ana)).labels).toEqual([
    { id: vip, name: 'VIP', color: 'red' },
    { id: late, name: 'Late', color: 'red' },
  ])
})

test('a contact made by a send learns its names and its empty name from the first message; the name is told', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.open({ phone_number: '+15550123456' })
  const answer = await number.inbound(ana)
  expect(answer).toMatchObject({ contact: { ...contact, name: 'Ana' }, conversation: { id: conversation.id } })
  expect(await number.getContact(contact.id)).toMatchObject({ name: 'Ana', bsuid: 'US.1', username: 'ana.p' })
  expect((await number.inbound({ bsuid: 'US.1' })).contact.id).toBe(contact.id)
  expect(await subjectsOf(number.organizationId)).toEqual([
    'event.directory.contact-created',
    'event.directory.contact-updated',
  ])
})

test('who was given a Mexican or Brazilian number in its other writing is who writes from it, unless another has it as it is', async () => {
  const number = await newNumber(directory.app)
  const { contacts } = telling(directory.app, number)
  for (const [given, written] of [
    ['+525512345678', '5215512345678'],
    ['+5511987654321', '551187654321'],
  ] as const) {
    const { contact, conversation } = await number.open({ phone_number: given })
    const messages = everywhere(directory, number, 4).map(({ inbound }) => inbound({ wa_id: written }))
    for (const answer of await Promise.all(messages)) expect(answer).toMatchObject({ contact, conversation })
    expect(await number.open({ phone_number: `+${written}` }, { window: 'open' })).toMatchObject({ contact })
    // The user id is known of somebody who was not known to have the number.
    const user = { bsuid: `MX.${written}` }
    const other = await number.inbound(user)
    expect(await number.inbound({ wa_id: written, ...user })).toMatchObject({ contact, conversation })
    await expect(number.getContact(other.contact.id)).rejects.toMatchObject({ failure: 'resource_not_found' })
  }
  const [given, written] = ['+5531987654321', '553187654321']
  const { contact } = await number.open({ phone_number: given })
  await contacts([{ wa_id: written, name: 'Eva', action: 'add', at: ago(1) }])
  expect((await number.inbound({ wa_id: written })).contact).toMatchObject({ name: 'Eva' })
  expect((await number.open({ phone_number: given })).contact.id).toBe(contact.id)
})

test('a changed profile name does not change the name', async () => {
  const number = await newNumber(directory.app)
  await number.inbound(ana)
  expect((await number.inbound({ ...ana, profile_name: 'Ana Maria' })).contact.name).toBe('Ana')
})

test('a new parent of a known user id is taken over and told', async () => {
  const number = await newNumber(directory.app)
  await number.inbound({ ...ana, sent_at: ago(2) })
  await number.inbound({ ...ana, parent_bsuid: 'US.ENT.10', sent_at: ago(1) })
  expect((await eventsOf(directory, number.organizationId)).slice(1)).toMatchObject([
    {
      type: 'contact.identity_updated',
      data: {
        previous: { bsuid: 'US.1', parent_bsuid: 'US.ENT.9', phone_number: '+15550123456' },
        current: { bsuid: 'US.1', parent_bsuid: 'US.ENT.10', phone_number: '+15550123456' },
      },
    },
  ])
})

test('a new bsuid of a known number is taken over and told; the old one still finds the contact', async () => {
  const number = await newNumber(directory.app)
  const { contact } = await number.inbound({ ...ana, sent_at: ago(3) })
  expect((await number.inbound({ ...ana, bsuid: 'US.2', sent_at: ago(1) })).contact.id).toBe(contact.id)
  expect(await number.getContact(contact.id)).toMatchObject({ bsuid: 'US.2' })
  // Sent before the change, delivered after it.
  expect((await number.inbound({ bsuid: 'US.1', sent_at: ago(2) })).contact.id).toBe(contact.id)
  expect(await number.getContact(contact.id)).toMatchObject({ bsuid: 'US.2' })
  expect((await eventsOf(directory, number.organizationId)).slice(1)).toMatchObject([
    {
      type: 'contact.identity_updated',
      data: {
        contact: {
          id: contact.id,
          object: 'contact',
          phone_number: '+15550123456',
          name: 'Ana',
          phone_number_id: number.phoneNumberId,
        },
        previous: { bsuid: 'US.1', parent_bsuid: 'US.ENT.9', phone_number: '+15550123456' },
        current: { bsuid: 'US.2', parent_bsuid: 'US.ENT.9', phone_number: '+15550123456' },
        changed_at: expect.any(String),
      },
    },
  ])
})

test('a contact known by bsuid alone learns its number, which is told, once under parallel messages', async () => {
  const number = await newNumber(directory.app)
  const { contact } = await number.inbound({ bsuid: 'US.1' })
  await Promise.all(everywhere(directory, number, 20).map(({ inbound }) => inbound(ana)))
  expect(await number.getContact(contact.id)).toMatchObject({ phone_number: '+15550123456' })
  expect((await number.open({ phone_number: '+15550123456' })).contact.id).toBe(contact.id)
  expect(await subjectsOf(number.organizationId)).toEqual([
    'event.directory.contact-created',
    'event.directory.contact-identity-updated',
    'event.directory.contact-updated',
  ])
})

test('after a contact is gone its conversation shows its id alone, and the next message makes a new one', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.inbound(ana)
  await directory.sql`delete from identities where contact_id = ${contact.id}`
  await directory.sql`update contacts set deleted_at = now() where id = ${contact.id}`
  const gone = { id: contact.id, phone_number: null, name: null }
  expect(await number.getConversation(conversation.id)).toMatchObject({ contact: gone })
  const next = await number.inbound(ana)
  expect(next.contact.id).not.toBe(contact.id)
  expect(next.conversation.id).not.toBe(conversation.id)
  expect((await number.listConversations()).data.map((row) => row.contact)).toEqual([next.contact, gone])
  expect((await number.listContacts()).data.map(({ id }) => id)).toEqual([next.contact.id])
  await expect(number.getContact(contact.id)).rejects.toMatchObject({ failure: 'resource_not_found' })
})

test('organizations that share a number id, people and message ids do not meet, in one batch either', async () => {
  const number = await newNumber(directory.app)
  const other = await newNumber(directory.app, { phone_number_id: number.phoneNumberId })
  const second = await newNumber(directory.app, { organization_id: number.organizationId })
  for (const upstreamId of ['wamid.A', 'wamid.A', 'wamid.B']) {
    const message = { ...ana, upstream_id: upstreamId }
    const answers = await Promise.all([number, other, second].map(({ inbound }) => inbound(message)))
    expect(new Set(answers.map(({ contact }) => contact.id)).size).toBe(3)
    expect(new Set(answers.map(({ conversation }) => conversation.id)).size).toBe(3)
  }
  for (const { listConversations } of [number, other, second]) {
    expect((await listConversations()).data).toMatchObject([{ unread_count: 2 }])
  }
  const stranger = asking(directory.app, other.organizationId, second.phoneNumberId)
  await expect(stranger.inbound(ana)).rejects.toMatchObject({ failure: 'resource_not_found' })
})

/** A message of somebody who was found. */
const inboundOf = (
  { organizationId, phoneNumberId }: Pick<Awaited<ReturnType<typeof newNumber>>, 'organizationId' | 'phoneNumberId'>,
  conversationId: string,
  contactId: string,
) => ({
  organizationId,
  phoneNumberId,
  upstreamId: 'wamid.A',
  sentAt: new Date(),
  countsUnread: true,
  conversationId,
  contact: { id: contactId, phoneNumber: null, name: null },
})

test('a message is not recorded in a conversation that went to another contact, or on in another one', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.inbound(ana)
  const other = await number.inbound({ wa_id: '15550777777' })
  const message = inboundOf(number, conversation.id, other.contact.id)
  expect(await insertInbounds(directory.sql, [message])).toEqual([null])
  await directory.sql`update conversations set merged_into = ${other.conversation.id} where id = ${conversation.id}`
  const own = { ...message, contact: { ...message.contact, id: contact.id } }
  expect(await insertInbounds(directory.sql, [own])).toEqual([null])
  expect(await number.getConversation(conversation.id)).toMatchObject({ unread_count: 1 })
})

test('a message is not recorded for a contact that was merged since, beside one of the contact that it became', async () => {
  const number = await newNumber(directory.app)
  const { contact: gone, conversation } = await number.inbound({ bsuid: 'US.1' })
  const { contact, conversation: empty } = await number.open({ phone_number: '+15550123456' })
  await directory.sql`delete from conversations where id = ${empty.id}`
  expect(await number.inbound(ana)).toMatchObject({
    contact: { id: contact.id },
    conversation: { id: conversation.id },
  })
  const messages = [gone.id, contact.id].map((id) => ({
    ...inboundOf(number, conversation.id, id),
    upstreamId: `wamid.${id}`,
  }))
  expect(await insertInbounds(directory.sql, messages)).toMatchObject([null, { contactId: contact.id }])
  expect(await number.getConversation(conversation.id)).toMatchObject({ unread_count: 3 })
})

test('a message is not recorded for a contact that was deleted since it was found', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.inbound(ana)
  await directory.sql.begin((tx) => forgetContacts(tx, number.organizationId, [contact.id]))
  expect(await insertInbounds(directory.sql, [inboundOf(number, conversation.id, contact.id)])).toEqual([null])
})

test('a message that waits for the deletion of its contact is a new contact’s', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.inbound(ana)
  let waiting: ReturnType<typeof number.inbound> | undefined
  await directory.sql.begin(async (tx) => {
    await forgetContacts(tx, number.organizationId, [contact.id])
    await touchConversations(tx, number.organizationId, [contact.id])
    waiting = number.inbound(ana)
    await untilSomebodyWaits(directory.sql)
  })
  const recorded = await waiting
  expect(recorded?.contact.id).not.toBe(contact.id)
  expect(await number.getConversation(conversation.id)).toMatchObject({ unread_count: 1 })
  expect(await number.getConversation(recorded?.conversation.id ?? '')).toMatchObject({ unread_count: 1 })
})

test('a recorded message is forgotten after 8 days, and no earlier', async () => {
  const number = await newNumber(directory.app)
  const { organizationId } = number
  for (const id of ['old', 'young']) await number.inbound({ ...ana, upstream_id: id })
  const age = (id: string, time: string) => directory.sql`
    update inbounds set recorded_at = now() - ${time}::interval where organization_id = ${organizationId} and upstream_id = ${id}
  `
  await age('old', '193 hours')
  await age('young', '191 hours')
  expect(await sweepInbounds(directory.sql)).toBe(1)
  expect(await sweepInbounds(directory.sql)).toBe(0)
  const left = await directory.sql`select upstream_id from inbounds where organization_id = ${organizationId}`
  expect(left).toEqual([{ upstreamId: 'young' }])
})

test('of thousands of labels the oldest 500 are answered, which leave room for the message in its event', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.inbound(ana)
  const ids = Array.from({ length: 6_000 }, (_, n) => `lbl_01JQ8Z6V0A7XJ2N5T9${String(n).padStart(8, '0')}`)
  await directory.sql`
    insert into labels (organization_id, id, team_id, name, color, created_at, updated_at)
    select ${number.organizationId}, id, 'team_1', repeat('😀', 45) || n, 'orange', now(), now()
    from unnest(${ids}::text[]) with ordinality as u(id, n)
  `
  await directory.sql`
    insert into contact_labels (organization_id, contact_id, label_id, phone_number_id)
    select organization_id, ${contact.id}, id, ${number.phoneNumberId} from labels
    where organization_id = ${number.organizationId} and id < ${ids[5_000] ?? ''}
  `
  await directory.sql`
    insert into conversation_labels select organization_id, ${conversation.id}, id from labels
    where organization_id = ${number.organizationId} and id >= ${ids[5_000] ?? ''}
  `
  const { labels } = await number.inbound(ana)
  expect(labels.map(({ id }) => id)).toEqual(ids.slice(0, 500))
  expect(Buffer.byteLength(JSON.stringify(labels))).toBeLessThan(160 * 1024)
})
