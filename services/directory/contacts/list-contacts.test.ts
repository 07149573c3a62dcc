import { newId, timeOf } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asking, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing, tellTeam } from '../testing/managing.ts'

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

test('a contact is listed when it meets all filters at once', async () => {
  const number = await newNumber(directory.app)
  const { team_id: teamId } = number.state
  await tellTeam(directory, number.organizationId, teamId)
  const managed = managing(directory.app, { ...number, teamId })
  const label_id = (await managed.label('VIP')).id
  const { contact: ana } = await number.inbound({ wa_id: '15550123456', profile_name: 'Ana' })
  const { contact: eva } = await number.inbound({ wa_id: '15550123457', bsuid: 'US.1', profile_name: 'Eva' })
  await managed.attach(ana.id, label_id)
  const found = async (query: Parameters<typeof number.listContacts>[0]) =>
    (await number.listContacts(query)).data.map(({ id }) => id)
  const [ofAna, ofEva] = [{ phone_number: '+15550123456' }, { phone_number: '+15550123457' }]
  expect(await found({ ...ofAna, label_id, search: 'ana' })).toEqual([ana.id])
  expect(await found({ ...ofEva, label_id })).toEqual([])
  expect(await found({ ...ofEva, search: 'ana' })).toEqual([])
  expect(await found({ ...ofEva, bsuid: 'US.1' })).toEqual([eva.id])
  expect(await found({ ...ofAna, bsuid: 'US.1' })).toEqual([])
  await managed.attach(eva.id, label_id)
  expect(await found({ label_id, search: 'eva' })).toEqual([eva.id])
  const { data, next_cursor: cursor } = await number.listContacts({ label_id, limit: '1' })
  expect(data.map(({ id }) => id)).toEqual([eva.id])
  expect(await found({ label_id, ...(cursor !== null && { cursor }) })).toEqual([ana.id])
})

test('a label, or a phone number, lists the contacts of this number of ours alone, and a deleted label none', async () => {
  const number = await newNumber(directory.app)
  const { team_id: teamId } = number.state
  const second = await newNumber(directory.app, { organization_id: number.organizationId, team_id: teamId })
  await tellTeam(directory, number.organizationId, teamId)
  const managed = managing(directory.app, { ...number, teamId })
  const label_id = (await managed.label('VIP')).id
  const ids: string[] = []
  for (const one of [number, second]) {
    const { contact } = await one.open({ phone_number: '+15550123456' })
    await managing(directory.app, { ...one, teamId }).attach(contact.id, label_id)
    ids.push(contact.id)
  }
  for (const query of [{ label_id }, { phone_number: '+15550123456' }]) {
    const pages = await Promise.all([number, second].map((one) => one.listContacts(query)))
    expect(pages.map(({ data }) => data.map(({ id }) => id))).toEqual(ids.map((id) => [id]))
  }
  await managed.deleteLabel(label_id)
  expect((await number.listContacts({ label_id })).data).toEqual([])
})

test('one or two characters find words that begin with them, more of them what has them anywhere, in one piece', async () => {
  const number = await newNumber(directory.app)
  await number.inbound({ wa_id: '15550123456', profile_name: 'Abcd Bcde' })
  const count = async (search: string) => (await number.listContacts({ search })).data.length
  const searches = ['a', 'bc', 'cd', 'e', 'cde', 'd b', 'abcde']
  expect(await Promise.all(searches.map(count))).toEqual([1, 1, 0, 0, 1, 1, 0])
})

test('a search goes on behind the newest 2,000 contacts, also where these just fill its page', async () => {
  const number = await newNumber(directory.app)
  const newest = newId('ctc')
  const idOf = (n: number) => newest.slice(0, 14) + String(n).padStart(16, '0')
  await directory.sql`
    insert into contacts (organization_id, id, phone_number_id, phone_number, name, created_at, updated_at)
    select ${number.organizationId}, ${newest.slice(0, 14)}::text || lpad(n::text, 16, '0'), ${number.phoneNumberId},
      '+1' || (2000000000 + n), case when n in (1, 2002, 2003) then 'Zoë' else 'Ana' end, ${timeOf(newest)}, ${timeOf(newest)}
    from generate_series(1, 2003) n
  `
  const { data, next_cursor: cursor } = await number.listContacts({ search: 'zoë', limit: '2' })
  expect(data.map(({ id }) => id)).toEqual([idOf(2003), idOf(2002)])
  const second = await number.listContacts({ search: 'zoë', limit: '2', ...(cursor !== null && { cursor }) })
  expect(second).toMatchObject({ data: [{ id: idOf(1) }], has_more: false })
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
    () => other.listContacts({ cursor }),
    () => second.listContacts({ cursor }),
    () => number.listContacts({ cursor, phone_number: '+15550123001' }),
    () => number.listConversations({ cursor }),
  ]) {
    await expect(list()).rejects.toMatchObject({ failure: 'invalid_cursor' })
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
  for (const list of [stranger.listContacts, stranger.listConversations]) {
    await expect(list()).rejects.toMatchObject({ failure: 'resource_not_found' })
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
