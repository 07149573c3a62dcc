import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asking, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

test('pages go newest first, each contact once, to the end', async () => {
  const number = await newNumber(directory.app)
  const ids: string[] = []
  for (let n = 0; n < 7; n++) ids.unshift((await number.open({ phone_number: `+1555012300${n}` })).contact.id)
  const seen: string[][] = []
  let cursor: string | null | undefined
  do {
    const page = await number.listContacts({ limit: '3', ...(cursor && { cursor }) })
    seen.push(page.data.map(({ id }) => id))
    expect(page.has_more).toBe(page.next_cursor !== null)
    cursor = page.next_cursor
  } while (cursor)
  expect(seen).toEqual([ids.slice(0, 3), ids.slice(3, 6), ids.slice(6)])
})

test('a number without contacts has an empty page, a number that is not there is not found', async () => {
  const number = await newNumber(directory.app)
  expect(await number.listContacts()).toEqual({ data: [], has_more: false, next_cursor: null })
  const nowhere = asking(directory.app, number.organizationId, '999999999999')
  await expect(nowhere.listContacts()).rejects.toMatchObject({ failure: 'resource_not_found' })
})

test('a phone number is found as given and as the platform writes it, however it is spelt', async () => {
  const number = await newNumber(directory.app)
  const { contact } = await number.inbound({ wa_id: '15550123456', profile_name: 'Ana' })
  const given = await number.open({ phone_number: '+5511987654321' })
  await directory.sql`
    insert into identities (organization_id, phone_number_id, kind, value, contact_id)
    values (${number.organizationId}, ${number.phoneNumberId}, 'wa_id', '551187654321', ${given.contact.id})
  `
  const found = async (text: string) => (await number.listContacts({ phone_number: text })).data.map(({ id }) => id)
  for (const text of ['+15550123456', '15550123456', ' 15550123456', '+1 (555) 012-3456']) {
    expect(await found(text)).toEqual([contact.id])
  }
  expect(await found('+5511987654321')).toEqual([given.contact.id])
  expect(await found('+55 11 8765 4321')).toEqual([given.contact.id])
  expect(await found('+15550999999')).toEqual([])
  await expect(found('Ana')).rejects.toMatchObject({ failure: 'invalid_phone_number', param: 'phone_number' })
})

test('a search minds the case of no letter', async () => {
  const number = await newNumber(directory.app)
  const { contact } = await number.inbound({ wa_id: '15550123456', profile_name: 'Zoë ЖАННА Ünal' })
  await number.inbound({ wa_id: '15550123457', profile_name: 'Zoe' })
  for (const search of ['ZOË', 'жанна', 'ünal', 'Ü']) {
    expect((await number.listContacts({ search })).data.map(({ id }) => id)).toEqual([contact.id])
  }
})

test('a cursor holds for its organization, number and filters alone', async () => {
  const number = await newNumber(directory.app)
  const other = await newNumber(directory.app, { phone_number_id: number.phoneNumberId })
  const second = await newNumber(directory.app, { organization_id: number.organizationId })
  for (const n of [1, 2]) await number.open({ phone_number: `+1555012300${n}` })
  const { next_cursor: cursor } = await number.listContacts({ limit: '1' })
  if (cursor === null) throw new Error('no second page')
  expect((await number.listContacts({ limit: '50', cursor })).data).toHaveLength(1)
  for (const list of [
    other.listContacts({ cursor }),
    second.listContacts({ cursor }),
    number.listContacts({ cursor, phone_number: '+15550123001' }),
    number.listConversations({ cursor }),
  ]) {
    await expect(list).rejects.toMatchObject({ failure: 'invalid_cursor' })
  }
})

test("nobody sees another organization's or another number's contact", async () => {
  const number = await newNumber(directory.app)
  const other = await newNumber(directory.app, { phone_number_id: number.phoneNumberId })
  const second = await newNumber(directory.app, { organization_id: number.organizationId })
  const { contact, conversation } = await number.open({ phone_number: '+15550123456' })
  const stranger = asking(directory.app, other.organizationId, second.phoneNumberId)
  for (const { getContact, getConversation } of [other, second, stranger]) {
    await expect(getContact(contact.id)).rejects.toMatchObject({ failure: 'resource_not_found' })
    await expect(getConversation(conversation.id)).rejects.toMatchObject({ failure: 'resource_not_found' })
  }
  for (const { listContacts, listConversations } of [other, second]) {
    expect((await listContacts()).data).toEqual([])
    expect((await listContacts({ phone_number: '+15550123456' })).data).toEqual([])
    expect((await listConversations({ contact_id: contact.id })).data).toEqual([])
  }
  for (const list of [stranger.listContacts(), stranger.listConversations()]) {
    await expect(list).rejects.toMatchObject({ failure: 'resource_not_found' })
  }
})

test("one organization's searches leave connections for others", async () => {
  const number = await newNumber(directory.app)
  let ended = 0
  const searches = await directory.sql.begin(async (tx) => {
    // They take as long as one for common pieces among many contacts.
    await tx`lock table contacts`
    const search = () => number.listContacts({ search: 'ana' }).finally(() => ended++)
    const all = Promise.allSettled(Array.from({ length: 30 }, search))
    await untilSomebodyWaits(tx)
    await directory.sql`select 1`
    expect(ended).toBe(0)
    return { all }
  })
  expect((await searches.all).filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
})
