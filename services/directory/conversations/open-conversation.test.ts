import { timeOf } from '@app/shared/values/ids.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { forgetContacts } from '../contacts/forget-contacts.ts'
import { asking, eventsOf, everywhere, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const hourMs = 60 * 60 * 1000
const ago = (hours: number) => new Date(Date.now() - hours * hourMs).toISOString()
const ana = { phone_number: '+15550123456' }
const marketing = { marketing: true }

const { settings } = newAccountState()

const everythingOf = async (organizationId: string) => {
  const [row] = await directory.sql`
    select (select count(*)::int from contacts where organization_id = ${organizationId}) as contacts,
      (select count(*)::int from conversations where organization_id = ${organizationId}) as conversations,
      (select count(*)::int from identities where organization_id = ${organizationId}) as identities
  `
  return { ...row, events: (await eventsOf(directory, organizationId)).length }
}
const nothing = { contacts: 0, conversations: 0, identities: 0, events: 0 }

const setContact = (id: string, changes: { marketing_preference?: string; metadata?: string }) =>
  directory.sql`
    update contacts set marketing_preference = ${changes.marketing_preference ?? null},
      metadata = ${changes.metadata ?? null}::text::jsonb
    where id = ${id}
  `

test('a new recipient becomes a contact with a conversation and one event; a known one is found', async () => {
  const number = await newNumber(directory.app)
  const first = await number.open(ana)
  expect(first).toEqual({
    conversation: { id: expect.any(String), status: 'open', assigned_to: null },
    contact: { id: expect.any(String), phone_number: '+15550123456', name: null },
    window_until: null,
  })
  expect(await number.open(ana)).toEqual(first)
  const { id } = first.contact
  const createdAt = timeOf(id).toISOString()
  expect(await eventsOf(directory, number.organizationId)).toEqual([
    {
      subject: 'event.directory.contact-created',
      id: expect.stringMatching(/^evt_/),
      type: 'contact.created',
      created_at: expect.any(String),
      data: {
        contact: {
          id,
          object: 'contact',
          phone_number: '+15550123456',
          name: null,
          email: null,
          metadata: null,
          phone_number_id: number.phoneNumberId,
          created_at: createdAt,
          updated_at: createdAt,
        },
      },
    },
  ])
  expect(await number.getContact(id)).toMatchObject({ created_at: createdAt, updated_at: createdAt, bsuid: null })
  const conversation = await number.getConversation(first.conversation.id)
  expect(conversation.created_at).toBe(timeOf(first.conversation.id).toISOString())
  expect(conversation).toMatchObject({ last_message_at: null, last_inbound_at: null, unread_count: 0, assignee: null })
})

test('whoever wrote in is meant by either writing of a number of Mexico or Brazil, unless another is known by it as it is', async () => {
  const number = await newNumber(directory.app)
  const { contact: writer } = await number.inbound({ wa_id: '5215512345678' })
  expect((await number.open({ phone_number: '+525512345678' })).contact.id).toBe(writer.id)
  const { contact } = await number.open({ phone_number: '+5531987654321' })
  await telling(directory.app, number).contacts([{ wa_id: '553187654321', name: 'Eva', action: 'add', at: ago(1) }])
  await number.inbound({ wa_id: '553187654321' })
  expect((await number.open({ phone_number: '+5531987654321' })).contact.id).toBe(contact.id)
})

test('who has the number in its other writing opened the window, consented and opted out for the one that has it as given', async () => {
  const number = await newNumber(directory.app, { settings: { ...settings, require_marketing_consent: true } })
  const { contacts, preferences } = telling(directory.app, number)
  const waId = '5215512345678'
  const given = { phone_number: '+525512345678' }
  const { contact } = await number.open(given)
  await contacts([{ wa_id: waId, name: 'Ana', action: 'add', at: ago(2) }])
  await expect(number.open(given, { window: 'open' })).rejects.toMatchObject({ failure: 'outside_24h_window' })
  await expect(number.open(given, marketing)).rejects.toMatchObject({ failure: 'consent_required' })
  expect((await number.inbound({ wa_id: waId })).contact.id).not.toBe(contact.id)
  expect(await number.open(given, { window: 'open' })).toMatchObject({ contact, window_until: null })
  expect(await number.open(given, marketing)).toMatchObject({ contact })
  await preferences([{ wa_id: waId, bsuid: null, value: 'stop', at: ago(1) }])
  await expect(number.open(given, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})

test('a recipient may be a bsuid', async () => {
  const number = await newNumber(directory.app)
  const first = await number.open({ bsuid: 'US.134912' })
  expect(first.contact).toMatchObject({ phone_number: null })
  expect(await number.open({ bsuid: 'US.134912' })).toEqual(first)
  expect(await number.getContact(first.contact.id)).toMatchObject({ phone_number: null, bsuid: 'US.134912' })
})

test('who wrote in is found by the number as the platform writes it and by bsuid', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.inbound({ wa_id: '15550123456', bsuid: 'US.1', profile_name: 'Ana' })
  expect(await number.open(ana)).toMatchObject({ contact, conversation })
  expect(await number.open({ bsuid: 'US.1' })).toMatchObject({ contact, conversation })
})

test.each(['+15550123456', 'bsuid'])('50 parallel calls for a new recipient (%s) make one of each', async (kind) => {
  const number = await newNumber(directory.app)
  const recipient = kind === 'bsuid' ? { bsuid: 'US.1' } : { phone_number: kind }
  const calls = everywhere(directory, number, 10).flatMap(({ open }) => [1, 2, 3, 4, 5].map(() => open(recipient)))
  const answers = await Promise.all(calls)
  for (const answer of answers) expect(answer).toEqual(answers[0])
  expect(await everythingOf(number.organizationId)).toEqual({ contacts: 1, conversations: 1, identities: 1, events: 1 })
})

test('parallel sends and messages of many new people make one contact each, without deadlocks', async () => {
  const number = await newNumber(directory.app)
  const people = Array.from({ length: 20 }, (_, n) => ({ wa_id: `1555012${1000 + n}`, bsuid: `US.${n}` }))
  const calls = everywhere(directory, number, 5)
    .flatMap(({ open, inbound }) =>
      people.flatMap((person) => [
        () => open({ phone_number: `+${person.wa_id}` }),
        () => inbound(person),
        () => inbound({ wa_id: person.wa_id }),
        () => inbound({ bsuid: person.bsuid }),
      ]),
    )
    .toSorted(() => Math.random() - 0.5)
  await Promise.all(calls.map((call) => call()))
  // Who was met by number and by bsuid before any message named both was two contacts for a moment.
  expect((await number.listContacts()).data).toHaveLength(20)
  const created = (await eventsOf(directory, number.organizationId)).filter(({ type }) => type === 'contact.created')
  expect(await everythingOf(number.organizationId)).toMatchObject({
    contacts: created.length,
    conversations: created.length,
    identities: 60,
  })
})

test('outside the window a free-form send is refused and nothing is made', async () => {
  const number = await newNumber(directory.app)
  await expect(number.open(ana, { window: 'open' })).rejects.toMatchObject({ failure: 'outside_24h_window' })
  expect(await everythingOf(number.organizationId)).toEqual(nothing)
})

test('the window is 24 hours from the newest message by its own time', async () => {
  const number = await newNumber(directory.app)
  await number.inbound({ wa_id: '15550123456', sent_at: ago(24.01) })
  await expect(number.open(ana, { window: 'open' })).rejects.toMatchObject({ failure: 'outside_24h_window' })
  const sentAt = ago(23.9)
  await number.inbound({ wa_id: '15550123456', sent_at: sentAt })
  await number.inbound({ wa_id: '15550123456', sent_at: ago(30) })
  const { window_until: until } = await number.open(ana, { window: 'open' })
  expect(Date.parse(until ?? '') - Date.parse(sentAt)).toBe(24 * hourMs)
})

test('an account may leave the window to the platform', async () => {
  const number = await newNumber(directory.app, { settings: { ...settings, window_check: 'upstream' } })
  expect(await number.open(ana, { window: 'open' })).toMatchObject({ window_until: null })
})

test('a marketing send to who opted out is refused, any other is not', async () => {
  const number = await newNumber(directory.app)
  const { contact } = await number.inbound({ wa_id: '15550123456' })
  await setContact(contact.id, { marketing_preference: 'stop' })
  await expect(number.open(ana, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
  expect(await number.open(ana)).toMatchObject({ contact })
})

test('where consent is required a marketing send to a stranger is refused and nothing is made', async () => {
  const number = await newNumber(directory.app, { settings: { ...settings, require_marketing_consent: true } })
  await expect(number.open(ana, marketing)).rejects.toMatchObject({ failure: 'consent_required' })
  expect(await everythingOf(number.organizationId)).toEqual(nothing)
  expect(await number.open(ana)).toMatchObject({ window_until: null })
  await expect(number.open(ana, marketing)).rejects.toMatchObject({ failure: 'consent_required' })
})

test('who ever wrote in, resumed, or is marked so has consented', async () => {
  const number = await newNumber(directory.app, { settings: { ...settings, require_marketing_consent: true } })
  const { contact } = await number.open(ana)
  await setContact(contact.id, { metadata: '{"marketing_consent": "true"}' })
  await expect(number.open(ana, marketing)).rejects.toMatchObject({ failure: 'consent_required' })
  await setContact(contact.id, { metadata: '{"marketing_consent": true}' })
  expect(await number.open(ana, marketing)).toMatchObject({ contact })
  await setContact(contact.id, { marketing_preference: 'resume' })
  expect(await number.open(ana, marketing)).toMatchObject({ contact })
  await setContact(contact.id, {})
  await number.inbound({ wa_id: '15550123456', sent_at: ago(1000) })
  expect(await number.open(ana, marketing)).toMatchObject({ contact })
})

test('a contact without a conversation gets one, once', async () => {
  const number = await newNumber(directory.app)
  const { contact, conversation } = await number.open(ana)
  await directory.sql`delete from conversations where id = ${conversation.id}`
  const answers = await Promise.all(everywhere(directory, number, 20).map(({ open }) => open(ana)))
  for (const answer of answers) expect(answer).toMatchObject({ contact, conversation: answers[0]?.conversation })
  expect(await everythingOf(number.organizationId)).toMatchObject({ contacts: 1, conversations: 1, events: 1 })
})

test('a send that waits for the deletion of its contact, which has no conversation yet, is a new contact’s', async () => {
  const number = await newNumber(directory.app)
  const { contact } = await number.open(ana)
  await directory.sql`delete from conversations where organization_id = ${number.organizationId}`
  let waiting: ReturnType<typeof number.open> | undefined
  await directory.sql.begin(async (tx) => {
    await forgetContacts(tx, number.organizationId, [contact.id])
    waiting = number.open(ana)
    await untilSomebodyWaits(directory.sql)
  })
  const opened = await waiting
  expect(opened?.contact.id).not.toBe(contact.id)
  expect(
    await directory.sql`select contact_id from conversations where organization_id = ${number.organizationId}`,
  ).toEqual([{ contactId: opened?.contact.id }])
})

test('the same recipient of another organization or number is another contact', async () => {
  const number = await newNumber(directory.app)
  const other = await newNumber(directory.app, { phone_number_id: number.phoneNumberId })
  const second = await newNumber(directory.app, { organization_id: number.organizationId })
  const answers = await Promise.all([number, other, second].map(({ open }) => open(ana)))
  expect(new Set(answers.map(({ contact }) => contact.id)).size).toBe(3)
  for (const [n, { organizationId }] of [number, other].entries()) {
    expect(await everythingOf(organizationId)).toMatchObject({ contacts: 2 - n })
  }
})

test("a number that is not the organization's is not found", async () => {
  const number = await newNumber(directory.app)
  const stranger = asking(directory.app, (await newNumber(directory.app)).organizationId, number.phoneNumberId)
  await expect(stranger.open(ana)).rejects.toMatchObject({ failure: 'resource_not_found' })
})
