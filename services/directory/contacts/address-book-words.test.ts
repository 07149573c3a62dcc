import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDirectory, type TestDirectory } from '../testing/app.ts'
import { at } from '../testing/moments.ts'
import { newToldNumber } from '../testing/told.ts'
import { sweepWords } from './address-book-words.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const [ana, bo] = ['15550123456', '15550123457'] as const
const add = (wa_id: string, second: number) => ({ wa_id, name: 'Ana', action: 'add' as const, at: at(second) })
const remove = (wa_id: string, second: number) => ({ wa_id, name: null, action: 'remove' as const, at: at(second) })

const newTold = (changes?: Parameters<typeof newToldNumber>[1]) => newToldNumber(directory.app, changes)

/** The numbers that are known of an address book, after so many days. */
async function knownAfter(days: number, { organizationId }: { organizationId: string }) {
  await directory.sql`
    update synced_contacts set forgotten_at = forgotten_at - ${days} * interval '1 day' where organization_id = ${organizationId}
  `
  await sweepWords(directory.sql)
  const rows = await directory.sql<{ waId: string }[]>`
    select wa_id from synced_contacts where organization_id = ${organizationId} order by wa_id
  `
  return rows.map(({ waId }) => waId)
}

const contactIds = async ({ listContacts }: Awaited<ReturnType<typeof newTold>>) =>
  (await listContacts()).data.map(({ id }) => id)

test('the number of a contact that is deleted is forgotten when no older word of it can come any more', async () => {
  const number = await newTold()
  await number.contacts([add(ana, 1), add(bo, 1)])
  const { data } = await number.listContacts({ phone_number: `+${ana}` })
  await number.remove(data[0]?.id ?? '')
  expect(await knownAfter(7, number)).toEqual([ana, bo])
  expect(await number.contacts([add(ana, 1)])).toEqual({ applied: 0 })
  expect(await contactIds(number)).toHaveLength(1)
  expect(await knownAfter(2, number)).toEqual([bo])
})

test('what another number of the organization knows of the same person stays', async () => {
  const number = await newTold()
  const other = await newTold({ organization_id: number.organizationId })
  for (const each of [number, other]) await each.contacts([add(ana, 1)])
  const [id = ''] = await contactIds(number)
  await number.remove(id)
  expect(await knownAfter(9, number)).toEqual([ana])
  expect(await other.contacts([add(ana, 1)])).toEqual({ applied: 0 })
})

test('a number that is just told of again is not waited for, and stays', async () => {
  const number = await newTold()
  await number.contacts([add(ana, 1), add(bo, 1)])
  await number.contacts([remove(ana, 2), remove(bo, 2)])
  expect(await knownAfter(7, number)).toEqual([ana, bo])
  await directory.sql`
    update synced_contacts set forgotten_at = forgotten_at - interval '2 days' where organization_id = ${number.organizationId}
  `
  const swept = await directory.sql.begin(async (tx) => {
    await tx`select from synced_contacts where organization_id = ${number.organizationId} and wa_id = ${bo} for update`
    return [await sweepWords(directory.sql)]
  })
  expect(swept).toEqual([1])
  expect(await knownAfter(0, number)).toEqual([])
})

test('so is that of one which was there before the address book named it', async () => {
  const number = await newTold()
  const { contact } = await number.open({ phone_number: `+${ana}` })
  await number.contacts([add(ana, 1)])
  await number.remove(contact.id)
  expect(await knownAfter(9, number)).toEqual([])
})

test('and the number that a contact of the address book had before', async () => {
  const number = await newTold()
  await number.contacts([add(ana, 1)])
  await number.change('one', { wa_id: ana }, { wa_id: '15550123999' })
  const [id = ''] = await contactIds(number)
  await number.remove(id)
  expect(await knownAfter(9, number)).toEqual([])
})

test('and the number that one had before which the address book only named, or made and was merged', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana })
  const { contact: known } = await number.inbound({ bsuid: 'US.1' })
  await number.contacts([add(ana, 1), add(bo, 1)])
  await number.change('one', { wa_id: ana }, { wa_id: '15550123999' })
  await number.change('two', { bsuid: 'US.1' }, { bsuid: 'US.1', wa_id: bo })
  await number.change('three', { wa_id: bo }, { wa_id: '15550123998' })
  expect((await contactIds(number)).toSorted()).toEqual([contact.id, known.id])
  for (const id of [contact.id, known.id]) await number.remove(id)
  expect(await knownAfter(9, number)).toEqual([])
})

test('what the address book removed is forgotten, unless it comes back', async () => {
  const number = await newTold()
  await number.contacts([add(ana, 1), add(bo, 1)])
  await number.contacts([remove(ana, 2), remove(bo, 2)])
  await number.contacts([add(bo, 3)])
  expect(await knownAfter(9, number)).toEqual([bo])
  expect(await contactIds(number)).toHaveLength(1)
})

test('a deletion that finds no contact forgets nothing', async () => {
  const number = await newTold()
  await number.contacts([add(ana, 1)])
  const [id = ''] = await contactIds(number)
  await directory.sql`update contacts set deleted_at = now() where id = ${id}`
  await expect(number.remove(id)).rejects.toMatchObject({ failure: 'resource_not_found' })
  expect(await knownAfter(9, number)).toEqual([ana])
})
