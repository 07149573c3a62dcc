import { newAccountState } from '@app/test/account-state.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { overtaken, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { at } from '../testing/moments.ts'
import { newToldNumber } from '../testing/told.ts'
import { noteStop } from './consume-marketing-stops.ts'
import { forgetContacts } from './forget-contacts.ts'
import { claimNames, identitiesOf } from './identities.ts'
import { insertContactsWithin, newContactIds, unknownContact } from './insert-contacts.ts'
import { rememberStop, rememberStops } from './remembered-stops.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const ana = '15550123456'
const marketing = { marketing: true, window: 'any' } as const
const refused = { failure: 'marketing_opted_out' }

const newTold = (changes?: Parameters<typeof newToldNumber>[1]) => newToldNumber(directory.app, changes)

type Told = Awaited<ReturnType<typeof newTold>>

/** Somebody who wants no marketing messages. */
async function stopped({ open, preferences }: Told, waId: string) {
  const { contact } = await open({ phone_number: `+${waId}` })
  await preferences([{ wa_id: waId, bsuid: null, value: 'stop', at: at(1) }])
  return contact.id
}

/** A stop that the platform tells of a contact which it knows by its number or user id, and which is gone. */
const refusedOf = ({ organizationId, phoneNumberId }: Told, contactId: string, recipient: string) =>
  noteStop(directory.sql, organizationId, {
    phone_number_id: phoneNumberId,
    contact_id: contactId,
    recipient,
    at: at(5),
  })

test.each(['their own word', 'a refusal'])(
  'a stop of somebody who is just being made a contact is that contact’s, told by %s',
  async (by) => {
    const number = await newTold()
    const { organizationId, phoneNumberId, preferences } = number
    const { contact: gone } = await number.open({ phone_number: `+${ana}` })
    await number.remove(gone.id)
    const names = { phoneNumber: `+${ana}`, waId: ana, bsuid: null }
    const origin = { organizationId, phoneNumberId, traceparent: '' }
    const made = { ...unknownContact, ...names, ...newContactIds(), ...origin, identities: identitiesOf(names) }
    let stopping: Promise<unknown> | undefined
    // As an address book does, which makes many.
    await directory.sql.begin(async (tx) => {
      await insertContactsWithin(tx, [made])
      stopping =
        by === 'a refusal'
          ? refusedOf(number, gone.id, `+${ana}`)
          : preferences([{ wa_id: ana, bsuid: null, value: 'stop', at: at(1) }])
      await untilSomebodyWaits(directory.sql)
    })
    await stopping
    await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
  },
)

const eva = '15550199999'

test.each<[by: string, take: (number: Told) => Promise<unknown>]>([
  ['hand', (number) => number.create({ phone_number: `+${ana}`, bsuid: 'US.9' })],
  ['a message', (number) => number.inbound({ wa_id: ana, bsuid: 'US.9' })],
  ['a change of names', (number) => number.change('1', { wa_id: eva }, { wa_id: ana, bsuid: 'US.9' })],
])('a stop under a name that is just about to be taken is of who takes it, by %s', async (_, take) => {
  const number = await newTold()
  const { organizationId, phoneNumberId } = number
  const { contact: gone } = await number.open({ phone_number: `+${ana}` })
  await number.remove(gone.id)
  await number.inbound({ wa_id: eva })
  let taking: Promise<unknown> | undefined
  const holding = directory.sql.begin(async (tx) => {
    // The first of the names, in their order.
    await claimNames(tx, { organizationId, phoneNumberId }, gone.id, [{ kind: 'bsuid', value: 'US.9' }])
    taking = take(number)
    await untilSomebodyWaits(directory.sql)
    await refusedOf(number, gone.id, `+${ana}`)
    throw new Error('its names are free again')
  })
  await expect(holding).rejects.toThrow('free again')
  await taking
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('where consent is required a stop of somebody who is no contact is told before it', async () => {
  const number = await newTold({ settings: { ...newAccountState().settings, require_marketing_consent: true } })
  const [anybody, gone] = [{ phone_number: `+${ana}` }, { phone_number: `+${eva}` }]
  await expect(number.open(anybody, marketing)).rejects.toMatchObject({ failure: 'consent_required' })
  await number.preferences([{ wa_id: ana, bsuid: null, value: 'stop', at: at(1) }])
  await expect(number.open(anybody, marketing)).rejects.toMatchObject(refused)
  await number.remove(await stopped(number, eva))
  await expect(number.open(gone, marketing)).rejects.toMatchObject(refused)
  expect((await number.listContacts()).data).toEqual([])
})

test('a stop under a number that just comes to light is of whose it is', async () => {
  const number = await newTold()
  const { contact: gone } = await number.open({ phone_number: `+${ana}` })
  await number.remove(gone.id)
  const { contact } = await number.inbound({ bsuid: 'US.1' })
  await number.inbound({ bsuid: 'US.2' })
  await overtaken(
    directory,
    contact.id,
    () => number.inbound({ wa_id: ana, bsuid: 'US.1' }),
    () => refusedOf(number, gone.id, `+${ana}`),
  )
  await expect(number.open({ bsuid: 'US.1' }, marketing)).rejects.toMatchObject(refused)
  await number.open({ bsuid: 'US.2' }, marketing)
})

test('a stop under a user id that a message just brings is of whose it is', async () => {
  const number = await newTold()
  const { contact: gone } = await number.inbound({ bsuid: 'US.9' })
  await number.remove(gone.id)
  const { contact } = await number.inbound({ wa_id: eva })
  await overtaken(
    directory,
    contact.id,
    () => number.inbound({ wa_id: eva, bsuid: 'US.9' }),
    () => refusedOf(number, gone.id, 'US.9'),
  )
  await expect(number.open({ phone_number: `+${eva}` }, marketing)).rejects.toMatchObject(refused)
})

test('a contact that is made again by hand is still sent no marketing, under any of its names', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  const { status, data } = await number.create({ phone_number: `+${ana}`, bsuid: 'US.1', metadata: { plan: 'gold' } })
  expect([status, data.metadata]).toEqual([201, { plan: 'gold' }])
  for (const recipient of [{ phone_number: `+${ana}` }, { bsuid: 'US.1' }])
    await expect(number.open(recipient, marketing)).rejects.toMatchObject(refused)
  await number.preferences([{ wa_id: ana, bsuid: null, value: 'resume', at: at(2) }])
  await number.open({ bsuid: 'US.1' }, marketing)
})

test('what was said to another organization that had the number stops nobody', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  await directory.sql`
    update remembered_stops set organization_id = 'org_other' where phone_number_id = ${number.phoneNumberId}
  `
  await number.open({ phone_number: `+${ana}` }, marketing)
})

test('who is made by hand and did not stop is sent marketing', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  await number.create({ phone_number: '+15550199999' })
  await number.open({ phone_number: '+15550199999' }, marketing)
})

test.each(['a send', 'hand'])(
  'the number as the platform writes it is the same person, made again by %s',
  async (by) => {
    const number = await newTold()
    const id = await stopped(number, '5511987654321')
    await directory.sql`
    insert into identities (organization_id, phone_number_id, kind, value, contact_id)
    values (${number.organizationId}, ${number.phoneNumberId}, 'wa_id', '551187654321', ${id})
  `
    await number.remove(id)
    const written = { phone_number: '+551187654321' }
    await (by === 'hand' ? number.create(written) : number.open(written))
    await expect(number.open(written, marketing)).rejects.toMatchObject(refused)
  },
)

test.each(['nobody', 'a send', 'hand'])(
  'the other writing of a Mexican or Brazilian number is the same person, made again by %s',
  async (by) => {
    const number = await newTold()
    for (const [waId, phone_number] of [
      ['5215512345678', '+525512345678'],
      ['551187654321', '+5511987654321'],
    ] as const) {
      await number.remove(await stopped(number, waId))
      if (by === 'hand') await number.create({ phone_number })
      if (by === 'a send') await number.open({ phone_number })
      await expect(number.open({ phone_number }, marketing)).rejects.toMatchObject(refused)
    }
  },
)

test('a stop under the other writing of a number is of who gets the number by a change of names', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, '5511987654321'))
  await number.inbound({ wa_id: eva })
  await number.change('1', { wa_id: eva }, { wa_id: '551187654321' })
  await expect(number.open({ phone_number: '+551187654321' }, marketing)).rejects.toMatchObject(refused)
})

test('a contact that the address book removes is remembered to have stopped', async () => {
  const number = await newTold()
  const entry = (action: 'add' | 'remove', second: number) => ({ wa_id: ana, name: 'Ana', action, at: at(second) })
  await number.contacts([entry('add', 1)])
  await stopped(number, ana)
  await number.contacts([entry('remove', 2)])
  expect((await number.listContacts()).data).toEqual([])
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
  await number.contacts([entry('add', 3)])
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('who was known by user id alone is known to have stopped once the number is known, and after another deletion', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  const { contact } = await number.inbound({ bsuid: 'US.1' })
  await number.inbound({ bsuid: 'US.1', wa_id: ana })
  for (const recipient of [{ phone_number: `+${ana}` }, { bsuid: 'US.1' }])
    await expect(number.open(recipient, marketing)).rejects.toMatchObject(refused)
  await number.remove(contact.id)
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('a later word than the one remembered stays', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  await number.inbound({ bsuid: 'US.1' })
  await number.preferences([{ wa_id: null, bsuid: 'US.1', value: 'resume', at: at(2) }])
  await number.inbound({ bsuid: 'US.1', wa_id: ana })
  await number.open({ phone_number: `+${ana}` }, marketing)
})

test.each([0, 1, 2])('stops under several names are forgotten in one order, however they are found: %i', async (n) => {
  const number = await newTold()
  const { data: contact } = await number.create({ phone_number: '+5511987654321', bsuid: 'US.7' })
  await number.preferences([{ wa_id: null, bsuid: 'US.7', value: 'resume', at: at(2) }])
  const writings = ['phone:+5511987654321', 'phone:+551187654321', 'bsuid:US.7']
  const names = await directory.sql<{ hash: Buffer }[]>`
    insert into remembered_stops (organization_id, phone_number_id, name_hash, at)
    select ${number.organizationId}, ${number.phoneNumberId}, sha256(convert_to(name, 'UTF8')), ${at(1)}
    from unnest(${writings}::text[]) name order by 3
    returning name_hash as hash
  `
  const { forgetting, free } = await directory.sql.begin(async (tx) => {
    const { hash } = names[n] ?? { hash: null }
    await tx`select from remembered_stops where phone_number_id = ${number.phoneNumberId} and name_hash = ${hash} for update`
    const begun = directory.sql.begin(async (other) => {
      await other`set local enable_hashjoin = off`
      await other`set local enable_mergejoin = off`
      await rememberStops(other, number.organizationId, [contact.id])
    })
    await untilSomebodyWaits(directory.sql)
    const rows = await tx`
      select from remembered_stops where phone_number_id = ${number.phoneNumberId} for update skip locked
    `
    return { forgetting: begun, free: rows.length }
  })
  await forgetting
  expect(free).toBe(writings.length - n)
  expect(await number.open({ bsuid: 'US.7' }, marketing)).toMatchObject({ contact: { id: contact.id } })
})

test('who moves to a number that was remembered and is deleted does not take its stop away', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  const { contact } = await number.inbound({ wa_id: '15550199999' })
  await number.change('1', { wa_id: '15550199999' }, { wa_id: ana })
  await number.remove(contact.id)
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('who moves to a number that was remembered is sent none, and who comes back to it after a later word is', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  await number.inbound({ wa_id: eva, bsuid: 'US.1' })
  await number.change('1', { wa_id: eva }, { wa_id: ana })
  for (const recipient of [{ phone_number: `+${ana}` }, { bsuid: 'US.1' }])
    await expect(number.open(recipient, marketing)).rejects.toMatchObject(refused)
  await number.preferences([{ wa_id: ana, bsuid: null, value: 'resume', at: at(2) }])
  await number.change('2', { wa_id: ana }, { wa_id: eva })
  await number.change('3', { wa_id: eva }, { wa_id: ana })
  await number.open({ bsuid: 'US.1' }, marketing)
})

test.each(['nobody', 'a send'])(
  'a stop of before a change of names is one under the new ones, known to %s',
  async (to) => {
    const number = await newTold()
    await number.remove(await stopped(number, ana))
    if (to === 'a send') await number.open({ phone_number: `+${eva}` })
    await number.change('1', { wa_id: ana, bsuid: 'US.1' }, { wa_id: eva, bsuid: 'US.2' })
    await expect(number.open({ phone_number: `+${eva}` }, marketing)).rejects.toMatchObject(refused)
    if (to === 'nobody') await expect(number.open({ bsuid: 'US.2' }, marketing)).rejects.toMatchObject(refused)
  },
)

test('a stop of before a change of names is one of who is made under the new ones at the same moment', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  const app = { ...directory.app }
  app.lookUp = async (question) => {
    const found = await directory.app.lookUp(question)
    await number.open({ phone_number: `+${eva}` })
    return found
  }
  await telling(app, number).change('1', { wa_id: ana }, { wa_id: eva })
  await expect(number.open({ phone_number: `+${eva}` }, marketing)).rejects.toMatchObject(refused)
})

test('who stopped under a number after somebody else had left it is not taken for that one', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, ana))
  await number.change('1', { wa_id: ana }, { wa_id: eva }, at(0))
  await number.open({ phone_number: `+${eva}` }, marketing)
})

test.each(['nobody', 'a send', 'hand'])(
  'a stop that the platform tells of a contact that was just deleted holds, made again by %s',
  async (by) => {
    for (const recipient of [{ phone_number: `+${ana}` }, { bsuid: 'US.1' }]) {
      const number = await newTold()
      const { contact } = await number.open(recipient)
      await number.remove(contact.id)
      if (by === 'hand') await number.create(recipient)
      if (by === 'a send') await number.open(recipient)
      const stop = {
        phone_number_id: number.phoneNumberId,
        contact_id: contact.id,
        recipient: recipient.phone_number ?? recipient.bsuid,
        at: at(1),
      }
      await noteStop(directory.sql, number.organizationId, stop)
      await expect(number.open(recipient, marketing)).rejects.toMatchObject(refused)
    }
  },
)

test('a stop that the platform tells late does not stop who has asked for marketing since', async () => {
  const number = await newTold()
  const { contact } = await number.open({ phone_number: `+${ana}` })
  await number.preferences([{ wa_id: ana, bsuid: null, value: 'resume', at: at(2) }])
  const stop = {
    phone_number_id: number.phoneNumberId,
    contact_id: contact.id,
    recipient: `+${ana}`,
    at: at(1),
  }
  await noteStop(directory.sql, number.organizationId, stop)
  await number.open({ phone_number: `+${ana}` }, marketing)
})

test('a stop that the platform tells late of a contact that is gone does not stop who had asked for marketing since', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ bsuid: 'US.1' })
  const { contact: kept } = await number.inbound({ wa_id: ana })
  await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  await number.preferences([{ wa_id: ana, bsuid: null, value: 'resume', at: at(2) }])
  await number.remove(kept.id)
  const stop = { phone_number_id: number.phoneNumberId, contact_id: contact.id, recipient: `+${ana}`, at: at(1) }
  await noteStop(directory.sql, number.organizationId, stop)
  await number.open({ phone_number: `+${ana}` }, marketing)
  await noteStop(directory.sql, number.organizationId, { ...stop, at: at(3) })
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('a stop that the platform tells again of who has another number by now is not that of who has the number', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana })
  await refusedOf(number, contact.id, `+${ana}`)
  await number.change('1', { wa_id: ana }, { wa_id: eva })
  await number.inbound({ wa_id: ana })
  await refusedOf(number, contact.id, `+${ana}`)
  await number.open({ phone_number: `+${ana}` }, marketing)
  await expect(number.open({ phone_number: `+${eva}` }, marketing)).rejects.toMatchObject(refused)
})

test('who asked for marketing again and is deleted stopped under no other writing of the number either', async () => {
  const number = await newTold()
  await number.remove(await stopped(number, '5511987654321'))
  const other = '551187654321'
  const { contact } = await number.inbound({ wa_id: other })
  await expect(number.open({ phone_number: `+${other}` }, marketing)).rejects.toMatchObject(refused)
  await number.preferences([{ wa_id: other, bsuid: null, value: 'resume', at: at(2) }])
  await number.remove(contact.id)
  for (const phone_number of [`+${other}`, '+5511987654321']) await number.open({ phone_number }, marketing)
})

test('who asked one number of the organization for marketing again, and is deleted, has still stopped at the other, as has who stopped beside it', async () => {
  const number = await newTold()
  const other = await newTold({ organization_id: number.organizationId })
  for (const each of [number, other]) await each.remove(await stopped(each, ana))
  await number.remove(await stopped(number, eva))
  const { contact } = await number.inbound({ wa_id: ana })
  await number.preferences([{ wa_id: ana, bsuid: null, value: 'resume', at: at(2) }])
  await number.remove(contact.id)
  await number.open({ phone_number: `+${ana}` }, marketing)
  await expect(number.open({ phone_number: `+${eva}` }, marketing)).rejects.toMatchObject(refused)
  await expect(other.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('of two stops of somebody who is no contact the later one holds, told in either order', async () => {
  const number = await newTold()
  for (const second of [3, 1]) await number.preferences([{ wa_id: ana, bsuid: null, value: 'stop', at: at(second) }])
  await number.inbound({ wa_id: ana })
  await number.preferences([{ wa_id: ana, bsuid: null, value: 'resume', at: at(2) }])
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('who asked for marketing and is deleted takes no stop along that was told later', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana })
  await number.preferences([{ wa_id: ana, bsuid: null, value: 'resume', at: at(1) }])
  const { organizationId, phoneNumberId } = number
  const identities = identitiesOf({ phoneNumber: `+${ana}`, waId: ana, bsuid: null })
  await rememberStop(directory.sql, { organizationId, phoneNumberId, identities }, at(2))
  await number.remove(contact.id)
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('a stop of a contact that is just being deleted waits for nobody who waits for it', async () => {
  const number = await newTold()
  const { organizationId, phoneNumberId } = number
  const keptId = (await number.open({ phone_number: `+${ana}` })).contact.id
  const goneId = (await number.open({ bsuid: 'US.1' })).contact.id
  const stop = { contact_id: goneId, recipient: `+${ana}`, phone_number_id: phoneNumberId, at: at(5) }
  let noting: Promise<unknown> | undefined
  let locking: Promise<unknown> | undefined
  await directory.sql.begin(async (tx) => {
    await tx`select id from contacts where id = ${goneId} for no key update`
    await forgetContacts(tx, organizationId, [goneId])
    noting = noteStop(directory.sql, organizationId, stop)
    await untilSomebodyWaits(directory.sql)
    // As a merge of the two does.
    locking = directory.sql`
      select id from contacts where organization_id = ${organizationId} and id = any(${[keptId, goneId]}::text[]) and deleted_at is null
      order by id for no key update
    `.execute()
    await untilSomebodyWaits(directory.sql, 2)
  })
  await Promise.all([noting, locking])
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('a message that makes two contacts one brings what was remembered under its names', async () => {
  const number = await newTold()
  const [given, written] = ['5511987654321', '551187654321']
  await number.open({ phone_number: `+${given}` })
  await number.inbound({ bsuid: 'US.1' })
  const { organizationId, phoneNumberId } = number
  const identities = [{ kind: 'wa_id' as const, value: written }]
  await rememberStop(directory.sql, { organizationId, phoneNumberId, identities }, at(1))
  const { contact } = await number.inbound({ wa_id: written, bsuid: 'US.1' })
  expect((await number.listContacts()).data).toMatchObject([{ id: contact.id, phone_number: `+${given}` }])
  await expect(number.open({ bsuid: 'US.1' }, marketing)).rejects.toMatchObject(refused)
})

test('of two words of one second a stop holds, also when two contacts said them that are found to be one', async () => {
  const number = await newTold()
  await number.inbound({ wa_id: ana })
  await number.inbound({ bsuid: 'US.1' })
  await number.preferences([
    { wa_id: ana, bsuid: null, value: 'resume', at: at(1) },
    { wa_id: null, bsuid: 'US.1', value: 'stop', at: at(1) },
  ])
  await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})

test('a stop of a contact that is just being merged is that of the one that it is merged into', async () => {
  const number = await newTold()
  const { contact: kept } = await number.open({ phone_number: `+${ana}` })
  const { contact: merged } = await number.open({ bsuid: 'US.1' })
  const { organizationId, phoneNumberId } = number
  const stop = { contact_id: merged.id, recipient: 'US.1', phone_number_id: phoneNumberId, at: at(5) }
  let noting: Promise<unknown> | undefined
  await directory.sql.begin(async (tx) => {
    await tx`update contacts set deleted_at = now(), merged_into = ${kept.id} where id = ${merged.id}`
    await tx`update identities set contact_id = ${kept.id} where contact_id = ${merged.id}`
    noting = noteStop(directory.sql, organizationId, stop)
    await untilSomebodyWaits(directory.sql)
  })
  await noting
  await expect(number.open({ phone_number: `+${ana}` }, marketing)).rejects.toMatchObject(refused)
})
