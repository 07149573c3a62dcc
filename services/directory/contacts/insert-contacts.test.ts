import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import type { Identity } from './identities.ts'
import { insertContacts, newContactIds, unknownContact } from './insert-contacts.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

type Number = Awaited<ReturnType<typeof newNumber>>

const contactOf = ({ organizationId, phoneNumberId }: Number, ...identities: Identity[]) => ({
  ...unknownContact,
  ...newContactIds(),
  organizationId,
  phoneNumberId,
  traceparent: '',
  phoneNumber: null,
  identities,
})

const phone = (value: string): Identity => ({ kind: 'phone', value })
const bsuid = (value: string): Identity => ({ kind: 'bsuid', value })

const namesOf = async ({ organizationId }: Number) => {
  const rows = await directory.sql<{ value: string; contactId: string }[]>`
    select value, contact_id from identities where organization_id = ${organizationId} order by value
  `
  return Object.fromEntries(rows.map(({ value, contactId }) => [value, contactId]))
}

test('a contact that does not get all of its names is not made, and keeps none', async () => {
  const number = await newNumber(directory.app)
  const first = contactOf(number, bsuid('US.1'))
  const second = contactOf(number, phone('+15550123456'), bsuid('US.1'))
  expect(await insertContacts(directory.sql, [first])).toEqual([true])
  expect(await insertContacts(directory.sql, [second])).toEqual([false])
  expect(await namesOf(number)).toEqual({ 'US.1': first.id })
  expect(await eventsOf(directory, number.organizationId)).toHaveLength(1)
})

test('in one batch with it the others are made', async () => {
  const number = await newNumber(directory.app)
  const first = contactOf(number, bsuid('US.1'))
  const second = contactOf(number, phone('+15550123456'), bsuid('US.1'))
  const third = contactOf(number, phone('+15550777777'))
  const fourth = contactOf(number, phone('+15550777777'))
  const made = await Promise.all([first, second, third, fourth].map((contact) => directory.app.insertContact(contact)))
  expect(made).toEqual([true, false, true, false])
  expect(await namesOf(number)).toEqual({ 'US.1': first.id, '+15550777777': third.id })
  expect(await eventsOf(directory, number.organizationId)).toHaveLength(2)
})

test('batches that want the same names in any order do not wait for each other', async () => {
  const number = await newNumber(directory.app)
  const wanted = Array.from({ length: 400 }, (_, n) => [phone(`+1555012${1000 + n}`), bsuid(`US.${400 - n}`)])
  const batches = Array.from({ length: 8 }, (_, batch) =>
    wanted
      .toSorted(() => Math.random() - 0.5)
      .map((names) => contactOf(number, ...(batch % 2 === 0 ? names : names.toReversed()))),
  )
  // So that each has a connection and they start together.
  await Promise.all(batches.map(() => directory.sql`select pg_sleep(0.1)`))
  const made = await Promise.all(batches.map((batch) => insertContacts(directory.sql, batch)))
  expect(made.flat().filter(Boolean)).toHaveLength(400)
  expect(new Set(Object.values(await namesOf(number))).size).toBe(400)
})
