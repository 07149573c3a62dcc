import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing } from '../testing/managing.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

async function newManaged() {
  const number = await newNumber(directory.app)
  return { ...number, ...managing(directory.app, { ...number, teamId: number.state.team_id }) }
}

const ana = {
  phone_number: '+1 (555) 012-3456',
  bsuid: 'US.1',
  username: 'ana.p',
  name: 'Ana',
  email: 'ana@example.com',
}

test('makes a contact with its event, found by each of its names', async () => {
  const number = await newManaged()
  const { status, data } = await number.create({ ...ana, metadata: { plan: 'gold' } })
  expect(status).toBe(201)
  expect(data).toMatchObject({ ...ana, phone_number: '+15550123456', metadata: { plan: 'gold' }, parent_bsuid: null })
  expect(await number.getContact(data.id)).toEqual(data)
  expect((await number.open({ bsuid: 'US.1' })).contact.id).toBe(data.id)
  expect((await number.inbound({ wa_id: '15550123456' })).contact.id).toBe(data.id)
  const { id, object, phone_number, name, email, metadata, created_at, updated_at } = data
  const contact = {
    id,
    object,
    phone_number,
    name,
    email,
    metadata,
    phone_number_id: number.phoneNumberId,
    created_at,
    updated_at,
  }
  expect(await eventsOf(directory, number.organizationId)).toMatchObject([
    { type: 'contact.created', data: { contact } },
  ])
})

test('a person who is known already is answered unchanged, without an event', async () => {
  const number = await newManaged()
  const { contact } = await number.inbound({ wa_id: '15550123456', bsuid: 'US.1', profile_name: 'Ana' })
  const before = await number.getContact(contact.id)
  for (const body of [
    { phone_number: '+15550123456', name: 'Eva' },
    { bsuid: 'US.1', email: 'a@b.co' },
    { ...ana, bsuid: 'US.2' },
  ]) {
    expect(await number.create(body)).toMatchObject({ status: 200, data: before })
  }
  expect(await eventsOf(directory, number.organizationId)).toHaveLength(1)
})

test('who wrote in is known by the other writing of a Mexican or Brazilian number, and can still be written to by it', async () => {
  const number = await newManaged()
  const { contact } = await number.inbound({ wa_id: '5215512345678' })
  const phone_number = '+525512345678'
  expect(await number.create({ phone_number })).toMatchObject({ status: 200, data: { id: contact.id } })
  expect(await number.open({ phone_number }, { window: 'open' })).toMatchObject({ contact })
})

test('a number and a bsuid of two contacts are a conflict, which changes nothing', async () => {
  const number = await newManaged()
  await number.create({ phone_number: '+15550123456' })
  await number.create({ bsuid: 'US.1' })
  await expect(number.create(ana)).rejects.toMatchObject({ failure: 'contact_identity_conflict' })
  expect((await number.listContacts()).data).toHaveLength(2)
})

test('parallel calls with names in common make one contact and one event', async () => {
  const number = await newManaged()
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      number.create(n % 3 === 0 ? { bsuid: 'US.1', phone_number: '+15550123456' } : { phone_number: '+15550123456' }),
    ),
  )
  expect(new Set(answers.map(({ data }) => data.id)).size).toBe(1)
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  expect(await eventsOf(directory, number.organizationId)).toHaveLength(1)
})

test('a repeated key is answered with the first answer, and its status', async () => {
  const number = await newManaged()
  const first = await number.create(ana, 'key')
  await number.remove(first.data.id)
  expect(await number.create(ana, 'key')).toEqual({ ...first, replayed: true })
  for (const other of [{ ...ana, name: 'Eva' }, { phone_number: 'none' }])
    await expect(number.create(other, 'key')).rejects.toMatchObject({ failure: 'idempotency_key_reuse' })
})

test('a number that the organization does not have is not found', async () => {
  const stranger = managing(directory.app, { organizationId: newId('org'), phoneNumberId: '999999999999', teamId: '' })
  await expect(stranger.create(ana)).rejects.toMatchObject({ failure: 'resource_not_found' })
})
