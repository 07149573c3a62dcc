import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { at } from '../testing/moments.ts'
import { newToldNumber } from '../testing/told.ts'
import { forgetContacts } from './forget-contacts.ts'
import { setPreferences } from './record-preferences.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const ana = { wa_id: '15550123456', bsuid: null }
const recipient = { phone_number: '+15550123456' }
const marketing = { marketing: true }

const newTold = () => newToldNumber(directory.app)

test('who stopped gets no marketing message until it resumes, in whatever order that is told', async () => {
  const number = await newTold()
  await number.open(recipient, marketing)
  await number.preferences([{ ...ana, value: 'stop', at: at(1) }])
  await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
  await number.open(recipient)
  await number.preferences([{ ...ana, value: 'resume', at: at(2) }])
  await number.preferences([{ ...ana, value: 'stop', at: at(1) }])
  await number.open(recipient, marketing)
  await number.preferences([
    { ...ana, value: 'stop', at: at(4) },
    { ...ana, value: 'resume', at: at(3) },
  ])
  await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})

test('of two words of one second a stop holds, told together or one after the other', async () => {
  const words = [
    { ...ana, value: 'stop' as const, at: at(1) },
    { ...ana, value: 'resume' as const, at: at(1) },
  ]
  for (const told of [
    [words],
    [words.toReversed()],
    words.map((word) => [word]),
    words.toReversed().map((word) => [word]),
  ]) {
    const number = await newTold()
    await number.open(recipient)
    for (const preferences of told) await number.preferences(preferences)
    await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
  }
})

test('what one says of marketing is nobody else’s word', async () => {
  const number = await newTold()
  const other = { phone_number: '+15550123457' }
  for (const one of [recipient, other]) await number.open(one)
  await number.preferences([
    { ...ana, value: 'stop', at: at(1) },
    { wa_id: '15550123457', bsuid: null, value: 'resume', at: at(1) },
  ])
  await number.open(other, marketing)
  await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})

test('the stop of a stranger counts too, and makes no contact', async () => {
  const number = await newTold()
  expect(await number.preferences([{ ...ana, value: 'stop', at: at(1) }])).toEqual({ recorded: 1 })
  await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
  expect((await number.listContacts()).data).toEqual([])
  expect(await eventsOf(directory, number.organizationId)).toEqual([])
})

test('a stranger who wants marketing messages is a contact, which is told', async () => {
  const number = await newTold()
  await number.preferences([{ ...ana, value: 'stop', at: at(1) }])
  expect(await number.preferences([{ ...ana, value: 'resume', at: at(2) }])).toEqual({ recorded: 1 })
  const { contact } = await number.open(recipient, marketing)
  expect((await number.listContacts()).data).toMatchObject([{ id: contact.id }])
  expect(await eventsOf(directory, number.organizationId)).toMatchObject([{ type: 'contact.created' }])
})

test('a stop that is told again makes no contact anew that was deleted', async () => {
  const number = await newTold()
  const { contact } = await number.open(recipient)
  const stop = { ...ana, value: 'stop' as const, at: at(1) }
  await number.preferences([stop])
  await directory.sql.begin((tx) => forgetContacts(tx, number.organizationId, [contact.id]))
  await number.preferences([stop])
  expect((await number.listContacts()).data).toEqual([])
  await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})

test('a stop under the other writing of a Mexican number is of who was given it', async () => {
  const number = await newTold()
  const given = { phone_number: '+525512345678' }
  const { contact } = await number.open(given)
  await number.preferences([{ wa_id: '5215512345678', bsuid: null, value: 'stop', at: at(1) }])
  await expect(number.open(given, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
  expect((await number.listContacts()).data).toMatchObject([{ id: contact.id }])
})

test('the stop of a stranger is one of the contact that is made of them at the same moment', async () => {
  const number = await newTold()
  const app = { ...directory.app }
  app.lookUp = async (question) => {
    const found = await directory.app.lookUp(question)
    await number.open(recipient)
    return found
  }
  const stop = { ...ana, value: 'stop' as const, at: at(1) }
  expect(await telling(app, number).preferences([stop])).toEqual({ recorded: 1 })
  await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})

test('the word of a contact that was merged meanwhile is the survivor’s', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ bsuid: 'US.1' })
  await number.inbound({ wa_id: ana.wa_id })
  await number.inbound({ wa_id: ana.wa_id, bsuid: 'US.1' })
  const preference = {
    organization_id: number.organizationId,
    contact_id: contact.id,
    value: 'stop' as const,
    at: at(1),
  }
  expect(await setPreferences(directory.sql, [preference, preference])).toBe(1)
  expect(await setPreferences(directory.sql, [preference])).toBe(0)
  await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})

test('the word of a contact that is deleted meanwhile counts should they come back', async () => {
  const number = await newTold()
  const { contact } = await number.open(recipient)
  let telling: ReturnType<typeof number.preferences> | undefined
  await directory.sql.begin(async (tx) => {
    await forgetContacts(tx, number.organizationId, [contact.id])
    telling = number.preferences([{ ...ana, value: 'stop', at: at(1) }])
    await untilSomebodyWaits(directory.sql)
  })
  expect(await telling).toEqual({ recorded: 1 })
  await expect(number.open(recipient, marketing)).rejects.toMatchObject({ failure: 'marketing_opted_out' })
})
