import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, testDirectory, type TestDirectory } from '../testing/app.ts'
import { at } from '../testing/moments.ts'
import { newToldNumber } from '../testing/told.ts'
import { insertContacts, newContactIds, unknownContact } from './insert-contacts.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const newTold = (changes?: Parameters<typeof newToldNumber>[1]) => newToldNumber(directory.app, changes)

const entry = (wa_id: string, name: string | null, second: number, action: 'add' | 'remove' = 'add') => ({
  wa_id,
  name,
  action,
  at: at(second),
})
const namesOf = (contacts: { name: string | null }[]) => contacts.map(({ name }) => `${name}`).toSorted()
const [ana, bo] = ['15550123456', '15550123457'] as const

test('an address book makes contacts, without an event, once', async () => {
  const number = await newTold()
  const book = [entry(ana, 'Ana', 1), entry(bo, ' ', 1)]
  expect(await number.contacts([...book, ...book])).toEqual({ applied: 2 })
  expect(await number.contacts(book)).toEqual({ applied: 0 })
  const { data } = await number.listContacts()
  expect(namesOf(data)).toEqual(['Ana', 'null'])
  expect(data.map(({ phone_number }) => `${phone_number}`).toSorted()).toEqual([`+${ana}`, `+${bo}`])
  expect(await eventsOf(directory, number.organizationId)).toEqual([])
})

test('a name fills an empty one and replaces none', async () => {
  const number = await newTold()
  await number.open({ phone_number: `+${ana}` })
  await number.inbound({ wa_id: bo, profile_name: 'Bo' })
  await number.contacts([entry(ana, 'Ana', 1), entry(bo, 'Robert', 1)])
  const { data } = await number.listContacts()
  expect(namesOf(data)).toEqual(['Ana', 'Bo'])
})

test('of several words of one number the newest counts, in whatever order they come', async () => {
  const number = await newTold()
  expect(await number.contacts([entry(ana, 'Ana', 3), entry(ana, null, 2, 'remove')])).toEqual({ applied: 1 })
  expect(namesOf((await number.listContacts()).data)).toEqual(['Ana'])
})

test('what is removed there goes here, unless messages were exchanged or it was not made of the address book', async () => {
  const number = await newTold()
  const carl = '15550123458'
  await number.open({ phone_number: `+${carl}` })
  await number.contacts([entry(ana, 'Ana', 1), entry(bo, 'Bo', 1), entry(carl, 'Carl', 1)])
  await number.inbound({ wa_id: bo })
  await number.contacts([ana, bo, carl].map((waId) => entry(waId, null, 2, 'remove')))
  const { data } = await number.listContacts()
  expect(namesOf(data)).toEqual(['Bo', 'Carl'])
})

test('what the address book of another number of the organization removes goes there alone', async () => {
  const number = await newTold()
  const other = await newTold({ organization_id: number.organizationId })
  for (const each of [number, other]) await each.contacts([entry(ana, 'Ana', 1)])
  await number.contacts([entry(ana, null, 2, 'remove')])
  expect((await number.listContacts()).data).toEqual([])
  expect(namesOf((await other.listContacts()).data)).toEqual(['Ana'])
})

test('who writes in while the address book removes the number stays', async () => {
  const number = await newTold()
  await number.contacts([entry(ana, 'Ana', 1), entry(bo, null, 1)])
  const { data } = await number.listConversations()
  const conversation = data.find(({ contact }) => contact.name === 'Ana')
  let removing: ReturnType<typeof number.contacts> | undefined
  await directory.sql.begin(async (tx) => {
    await tx`update conversations set last_message_at = now() where id = ${conversation?.id ?? ''}`
    removing = number.contacts([entry(ana, null, 2, 'remove'), entry(bo, null, 2, 'remove')])
    await untilSomebodyWaits(directory.sql)
  })
  await removing
  expect(namesOf((await number.listContacts()).data)).toEqual(['Ana'])
})

test('whoever is just given a number that the address book adds keeps it, and all others of the book are taken over', async () => {
  const number = await newTold()
  const { organizationId, phoneNumberId } = number
  const identities = [{ kind: 'phone' as const, value: `+${ana}` }]
  const given = { ...unknownContact, ...newContactIds(), phoneNumber: `+${ana}`, identities }
  for (const book of [[entry(ana, 'Ana', 1)], [entry(ana, 'Anna', 2), entry(bo, 'Bo', 2)]]) {
    await directory.sql`delete from identities where organization_id = ${organizationId}`
    const { importing } = await directory.sql.begin(async (tx) => {
      await insertContacts(tx, [{ ...given, ...newContactIds(), organizationId, phoneNumberId, traceparent: '' }])
      const imported = number.contacts(book)
      await untilSomebodyWaits(directory.sql)
      return { importing: imported }
    })
    expect(await importing).toEqual({ applied: book.length })
  }
  const { data } = await number.listContacts()
  expect(namesOf(data)).toEqual(['Ana', 'Anna', 'Bo'])
})

test('an addition that comes after a later removal changes nothing', async () => {
  const number = await newTold()
  await number.contacts([entry(ana, null, 2, 'remove')])
  expect(await number.contacts([entry(ana, 'Ana', 1)])).toEqual({ applied: 0 })
  expect((await number.listContacts()).data).toEqual([])
  expect(await number.contacts([entry(ana, 'Ana', 3)])).toEqual({ applied: 1 })
  expect((await number.listContacts()).data).toHaveLength(1)
})

test('a name that is filled and a contact that goes are changes of the conversations, which show them', async () => {
  const number = await newTold()
  const named = await number.open({ phone_number: `+${ana}` })
  await number.contacts([entry(bo, 'Bo', 1)])
  const gone = await number.open({ phone_number: `+${bo}` })
  const show = () => Promise.all([named, gone].map(({ conversation }) => number.getConversation(conversation.id)))
  const before = await show()
  await number.contacts([entry(ana, 'Ana', 2), entry(bo, null, 2, 'remove')])
  const after = await show()
  expect(after.map(({ contact }) => contact.name)).toEqual(['Ana', null])
  for (const [n, { updated_at }] of after.entries()) expect(updated_at > (before[n]?.updated_at ?? '')).toBe(true)
})

test('a contact that goes leaves nothing personal behind', async () => {
  const number = await newTold()
  await number.contacts([entry(ana, 'Ana', 1)])
  await number.contacts([entry(ana, null, 2, 'remove')])
  const [row] = await directory.sql<{ text: string }[]>`
    select contacts::text as text from contacts where organization_id = ${number.organizationId}
  `
  expect(row?.text).not.toMatch(/Ana|15550123456/)
})

test("one organization's address books leave connections to others", async () => {
  const [many, other] = [await newTold(), await newTold()]
  const people = Array.from({ length: 12 }, (_, n) => String(Number(ana) + n))
  await Promise.all(people.map((waId) => many.inbound({ wa_id: waId })))
  const { importing } = await directory.sql.begin(async (tx) => {
    await tx`select from contacts where organization_id = ${many.organizationId} for update`
    const importing = Promise.allSettled(people.map((waId) => many.contacts([entry(waId, 'Ana', 1)])))
    await untilSomebodyWaits(tx)
    await other.contacts([entry(ana, 'Ana', 1)])
    return { importing }
  })
  expect((await importing).map(({ status }) => status)).toEqual(people.map(() => 'fulfilled'))
})

test('an address book waits for nobody who waits for it, and names whom it meets meanwhile', async () => {
  const number = await newTold()
  const { contact } = await number.open({ bsuid: 'US.1' })
  let importing: Promise<unknown> | undefined
  let changing: Promise<unknown> | undefined
  await directory.sql.begin(async (tx) => {
    // The contact is just given the second number, for which the address book has to wait. The first it has taken by then.
    await tx`
      insert into identities (organization_id, phone_number_id, kind, value, contact_id)
      values (${number.organizationId}, ${number.phoneNumberId}, 'phone', ${`+${bo}`}, ${contact.id}),
        (${number.organizationId}, ${number.phoneNumberId}, 'wa_id', ${bo}, ${contact.id})
    `
    importing = number.contacts([entry(ana, 'Ana', 1), entry(bo, 'Bo', 1)])
    await untilSomebodyWaits(directory.sql)
    changing = number.change('1', { bsuid: 'US.1' }, { bsuid: 'US.1', wa_id: ana })
    await untilSomebodyWaits(directory.sql, 2)
  })
  expect(await Promise.all([importing, changing])).toMatchObject([{ applied: 2 }, { contact: { id: contact.id } }])
  const { data } = await number.listContacts()
  expect(data).toMatchObject([{ id: contact.id, phone_number: `+${ana}`, name: expect.stringMatching(/^(Ana|Bo)$/) }])
})
