import { untilSomebodyWaits, untilWaitedFor } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, everywhere, overtaken, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { managing } from '../testing/managing.ts'
import { at } from '../testing/moments.ts'
import { newToldNumber } from '../testing/told.ts'
import { claimNames } from './identities.ts'
import { sweepIdentityChanges } from './identity-changes.ts'
import { learnRecipients } from './learn-recipients.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const newTold = (changes?: Parameters<typeof newToldNumber>[1]) => newToldNumber(directory.app, changes)

const updatesOf = async (organizationId: string) =>
  (await eventsOf(directory, organizationId)).filter(({ subject }) => subject.endsWith('identity-updated'))

const ana = '15550123456'

test('a change of somebody who is not known makes nobody', async () => {
  const number = await newTold()
  expect(await number.change('1', { bsuid: 'US.1' }, { bsuid: 'US.2' })).toEqual({ contact: null, conversation: null })
  expect((await number.listContacts()).data).toEqual([])
})

test('a number that is not the organization’s is not found', async () => {
  const number = await newTold()
  const strange = telling(directory.app, { ...number, phoneNumberId: '999999' })
  await expect(strange.change('1', { bsuid: 'US.1' }, { bsuid: 'US.2' })).rejects.toMatchObject({
    failure: 'resource_not_found',
  })
})

test('a user id is replaced, told once, and the next message is of the same contact', async () => {
  const number = await newTold()
  const { contact, conversation } = await number.inbound({ wa_id: ana, bsuid: 'US.1', parent_bsuid: 'US.ENT.1' })
  const change = () =>
    number.change('1', { wa_id: ana, bsuid: 'US.1' }, { wa_id: ana, bsuid: 'US.2', parent_bsuid: 'US.ENT.2' })
  expect(await change()).toEqual({ contact, conversation })
  expect(await change()).toEqual({ contact, conversation })
  expect(await updatesOf(number.organizationId)).toMatchObject([
    {
      type: 'contact.identity_updated',
      data: {
        contact: { id: contact.id, object: 'contact', phone_number: `+${ana}`, phone_number_id: number.phoneNumberId },
        previous: { bsuid: 'US.1', parent_bsuid: 'US.ENT.1', phone_number: `+${ana}` },
        current: { bsuid: 'US.2', parent_bsuid: 'US.ENT.2', phone_number: `+${ana}` },
      },
    },
  ])
  expect((await number.inbound({ bsuid: 'US.2' })).contact.id).toBe(contact.id)
})

test('a user id that is replaced before any message brought it is told, with both', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana })
  const change = () => number.change('1', { wa_id: ana, bsuid: 'US.1' }, { wa_id: ana, bsuid: 'US.2' })
  await change()
  await change()
  expect(await updatesOf(number.organizationId)).toMatchObject([
    {
      data: {
        contact: { id: contact.id },
        previous: { bsuid: 'US.1', parent_bsuid: null, phone_number: `+${ana}` },
        current: { bsuid: 'US.2', parent_bsuid: null, phone_number: `+${ana}` },
      },
    },
  ])
})

test('a user id that is told beside a number, and replaced by none, is not told', async () => {
  const number = await newTold()
  await number.inbound({ wa_id: ana })
  await number.change('1', { wa_id: ana, bsuid: 'US.1' }, { wa_id: ana, bsuid: null })
  await number.change('2', { wa_id: ana, bsuid: 'US.1' }, { wa_id: ana, bsuid: 'US.1' })
  expect(await updatesOf(number.organizationId)).toEqual([])
})

test('what the person wrote under the new number before is open in the conversation that goes on', async () => {
  const number = await newTold()
  const before = await number.inbound({ wa_id: ana, sent_at: new Date(Date.now() - 60_000).toISOString() })
  const { updateConversation } = managing(directory.app, { ...number, teamId: number.state.team_id })
  const eva = '15550654321'
  await updateConversation(before.conversation.id, { status: 'resolved' })
  const { conversation: later } = await number.inbound({ wa_id: eva, sent_at: new Date().toISOString() })
  const { last_inbound_at } = await number.getConversation(later.id)
  const changed = await number.change('1', { wa_id: ana }, { wa_id: eva })
  expect(changed).toMatchObject({ conversation: { id: before.conversation.id, status: 'open' } })
  expect(await number.getConversation(before.conversation.id)).toMatchObject({
    status: 'open',
    unread_count: 2,
    last_inbound_at,
  })
})

const [first, second, third, fourth] = [ana, '15550199999', '15550188888', '15550177777']

/** Somebody known by the first number who changes it three times, each time told beside the same user id. */
async function newMover() {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first, bsuid: 'US.1' })
  const numbers = [first, second, third, fourth]
  const move = (n: number) =>
    number.change(`${n}`, { wa_id: numbers[n - 1] ?? null }, { wa_id: numbers[n] ?? null, bsuid: 'US.1' }, at(n))
  async function expectToHave(waId: string) {
    const known = { id: contact.id, phone_number: `+${waId}`, bsuid: 'US.1' }
    expect((await number.listContacts()).data).toMatchObject([known])
    for (const wa_id of numbers.slice(0, numbers.indexOf(waId)))
      expect((await number.inbound({ wa_id })).contact.id).not.toBe(contact.id)
  }
  return { contact, move, expectToHave }
}

test.each([[[1, 2, 3]], [[1, 3, 2]], [[2, 1, 3]], [[2, 3, 1]], [[3, 1, 2]], [[3, 2, 1]]])(
  'changes of number end at the newest, told in the order %j',
  async (order) => {
    const { move, expectToHave } = await newMover()
    for (const n of order) await move(n)
    await expectToHave(fourth)
  },
)

test('changes of number end at the newest, where one waits for a later one', async () => {
  const { contact, move, expectToHave } = await newMover()
  const moving: Promise<unknown>[] = []
  await directory.sql.begin(async (tx) => {
    await tx`select id from contacts where id = ${contact.id} for no key update`
    for (const n of [2, 1]) {
      moving.push(move(n))
      await untilSomebodyWaits(directory.sql, moving.length)
    }
  })
  await Promise.all(moving)
  await expectToHave(third)
})

test.each([['1,2'], ['2,1']])(
  'who wrote under the number in between is the same person, told in the order %s',
  async (order) => {
    const number = await newTold()
    const { contact } = await number.inbound({ wa_id: first, bsuid: 'US.1' })
    await number.inbound({ wa_id: second, bsuid: 'US.2' })
    const moves: Record<string, () => Promise<unknown>> = {
      1: () => number.change('1', { wa_id: first, bsuid: 'US.1' }, { wa_id: second, bsuid: 'US.2' }, at(1)),
      2: () => number.change('2', { wa_id: second, bsuid: 'US.2' }, { wa_id: third, bsuid: 'US.3' }, at(2)),
    }
    for (const n of order.split(',')) await moves[n]?.()
    expect((await number.listContacts()).data).toMatchObject([
      { id: contact.id, phone_number: `+${third}`, bsuid: 'US.3' },
    ])
    for (const bsuid of ['US.1', 'US.2']) expect((await number.inbound({ bsuid })).contact.id).toBe(contact.id)
    expect((await number.inbound({ wa_id: second })).contact.id).not.toBe(contact.id)
  },
)

test('a user id that is told late beside a number which was left does not bring the number back, nor its next owner', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first, bsuid: 'US.1' })
  await number.change('2', { wa_id: first }, { wa_id: second }, at(2))
  const { contact: next } = await number.inbound({ wa_id: first })
  await number.change('1', { wa_id: first, bsuid: 'US.1' }, { wa_id: first, bsuid: 'US.2' }, at(1))
  expect(await number.getContact(contact.id)).toMatchObject({ phone_number: `+${second}`, bsuid: 'US.2' })
  expect((await number.inbound({ wa_id: first })).contact.id).toBe(next.id)
})

test('changes of one second are made as they are told', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first })
  await number.change('1', { wa_id: first }, { wa_id: second }, at(1))
  await number.change('2', { wa_id: second }, { wa_id: first }, at(1))
  expect(await number.getContact(contact.id)).toMatchObject({ phone_number: `+${first}` })
})

test.each([[[1, 2]], [[2, 1]]])('user ids end at the newest, told in the order %j', async (order) => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  const replace = (n: number) =>
    number.change(`${n}`, { wa_id: ana, bsuid: `US.${n}` }, { wa_id: ana, bsuid: `US.${n + 1}` }, at(n))
  for (const n of [...order, ...order]) await replace(n)
  expect(await number.getContact(contact.id)).toMatchObject({ phone_number: `+${ana}`, bsuid: 'US.3' })
  for (const bsuid of ['US.2', 'US.3']) expect((await number.inbound({ bsuid })).contact.id).toBe(contact.id)
})

test('who wrote under a user id in between that is told late is the same person', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  await number.change('2', { wa_id: ana, bsuid: 'US.2' }, { wa_id: ana, bsuid: 'US.3' }, at(2))
  await number.inbound({ bsuid: 'US.2' })
  await number.change('1', { wa_id: ana, bsuid: 'US.1' }, { wa_id: ana, bsuid: 'US.2' }, at(1))
  expect((await number.listContacts()).data).toMatchObject([{ id: contact.id, bsuid: 'US.3' }])
})

test.each([
  ['number', { wa_id: second, bsuid: 'US.1' }],
  ['user id', { wa_id: first, bsuid: 'US.2' }],
])('a message of before a change of the %s that comes late does not change it back', async (_, current) => {
  const number = await newTold()
  const before = { wa_id: first, bsuid: 'US.1' }
  const { contact } = await number.inbound({ ...before, sent_at: at(0) })
  await number.change('2', before, current, at(2))
  expect((await number.inbound({ ...before, sent_at: at(1) })).contact.id).toBe(contact.id)
  const { wa_id, bsuid } = current
  expect(await number.getContact(contact.id)).toMatchObject({ phone_number: `+${wa_id}`, bsuid })
  const { contact: next } = await number.inbound({ wa_id: first, sent_at: at(3) })
  expect(next.id === contact.id).toBe(wa_id === first)
})

test('a message of before a change that comes late brings the number to nobody who was known by user id alone', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first })
  await number.inbound({ bsuid: 'US.1' })
  await number.change('2', { wa_id: first }, { wa_id: second }, at(2))
  expect((await number.inbound({ wa_id: first, bsuid: 'US.1', sent_at: at(1) })).contact.id).toBe(contact.id)
  expect((await number.listContacts()).data).toMatchObject([{ phone_number: `+${second}`, bsuid: 'US.1' }])
})

test('a message of before a change that comes late is not of the next owner of the number', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first, bsuid: 'US.1', sent_at: at(0) })
  await number.change('2', { wa_id: first, bsuid: 'US.1' }, { wa_id: second, bsuid: 'US.2' }, at(2))
  const { contact: next } = await number.inbound({ wa_id: first, bsuid: 'US.9', sent_at: at(4) })
  expect((await number.inbound({ wa_id: first, bsuid: 'US.1', sent_at: at(1) })).contact.id).toBe(contact.id)
  expect((await number.listContacts()).data.map(({ id }) => id)).toEqual([next.id, contact.id])
})

test('a message of before a change that comes late and names the number alone is of the person who left it, whoever has it by now', async () => {
  const number = await newTold()
  const late = () => number.inbound({ wa_id: first, sent_at: at(1) })
  const { contact } = await number.inbound({ wa_id: first, sent_at: at(0) })
  await number.change('2', { wa_id: first }, { wa_id: second }, at(2))
  await number.change('3', { wa_id: second }, { wa_id: third }, at(3))
  expect((await late()).contact.id).toBe(contact.id)
  const { contact: next } = await number.inbound({ wa_id: first, sent_at: at(4) })
  expect(next.id).not.toBe(contact.id)
  expect((await late()).contact.id).toBe(contact.id)
  expect((await number.inbound({ wa_id: first, sent_at: at(3) })).contact.id).toBe(next.id)
  expect(await number.getContact(contact.id)).toMatchObject({ phone_number: `+${third}` })
})

test('who writes to another number of the organization, too, has there the names of before until the change is told there', async () => {
  const number = await newTold()
  const other = await newTold({ organization_id: number.organizationId })
  for (const each of [number, other]) await each.inbound({ wa_id: first, sent_at: at(0) })
  const [contact] = (await other.listContacts()).data
  await number.change('2', { wa_id: first }, { wa_id: second }, at(2))
  expect((await other.listContacts()).data).toEqual([contact])
  expect((await other.inbound({ wa_id: first, sent_at: at(1) })).contact.id).toBe(contact?.id)
  await other.change('2', { wa_id: first }, { wa_id: second }, at(2))
  expect((await other.listContacts()).data).toMatchObject([{ id: contact?.id, phone_number: `+${second}` }])
})

test('a message of before two changes that comes late is of the first person who left the number', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first, sent_at: at(0) })
  await number.change('2', { wa_id: first }, { wa_id: second }, at(2))
  await number.inbound({ wa_id: first, sent_at: at(3) })
  await number.change('4', { wa_id: first }, { wa_id: third }, at(4))
  expect((await number.inbound({ wa_id: first, sent_at: at(1) })).contact.id).toBe(contact.id)
})

test('who is written to at a number that somebody left has not written what comes late', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first, sent_at: at(0) })
  await number.change('2', { wa_id: first }, { wa_id: second }, at(2))
  const { contact: next } = await number.open({ phone_number: `+${first}` })
  expect((await number.inbound({ wa_id: first, sent_at: at(1) })).contact.id).toBe(contact.id)
  expect((await number.inbound({ wa_id: first, sent_at: new Date().toISOString() })).contact.id).toBe(next.id)
})

test('a number that is left when two become one contact is not taken by a message of before', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first, sent_at: at(0) })
  await number.inbound({ wa_id: second, sent_at: at(3) })
  const { changing, late } = await directory.sql.begin(async (tx) => {
    await tx`lock table identity_changes in share mode`
    const changing = number.change('2', { wa_id: first }, { wa_id: second }, at(2))
    await untilSomebodyWaits(directory.sql)
    const late = number.inbound({ wa_id: first, sent_at: at(1) })
    await Promise.race([late, untilSomebodyWaits(directory.sql, 2)])
    return { changing, late }
  })
  await changing
  expect((await late).contact.id).toBe(contact.id)
  expect((await number.listContacts()).data).toMatchObject([{ id: contact.id, phone_number: `+${second}` }])
})

test('who comes back to a number has it again', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: first, bsuid: 'US.1' })
  const move = (n: number, previous: string, current: string) =>
    number.change(`${n}`, { wa_id: previous }, { wa_id: current, bsuid: 'US.1' }, at(n))
  await move(2, second, third)
  await move(3, third, second)
  await move(1, first, second)
  expect(await number.getContact(contact.id)).toMatchObject({ phone_number: `+${second}` })
  await move(4, second, first)
  expect(await number.getContact(contact.id)).toMatchObject({ phone_number: `+${first}` })
  expect((await number.inbound({ wa_id: second })).contact.id).not.toBe(contact.id)
})

test('who wrote under the new id before the change was told becomes the one contact', async () => {
  const number = await newTold()
  const old = await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  const taken = await number.inbound({ bsuid: 'US.2' })
  expect(taken.contact.id).not.toBe(old.contact.id)
  await Promise.all(
    everywhere(directory, number, 4).map((_, n) =>
      telling(directory.newInstance(), number).change(`${n % 2}`, { bsuid: 'US.1' }, { bsuid: 'US.2' }),
    ),
  )
  expect((await number.listContacts()).data).toMatchObject([{ id: old.contact.id, bsuid: 'US.2' }])
  expect(await number.getConversation(old.conversation.id)).toMatchObject({ unread_count: 2 })
  expect(await updatesOf(number.organizationId)).toHaveLength(1)
})

test('a number that was given up is its next owner’s, also when the change is told again', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  const move = () => number.change('wamid.S', { wa_id: ana }, { wa_id: '15550199999' })
  expect(await move()).toMatchObject({ contact: { id: contact.id, phone_number: '+15550199999' } })
  const next = await number.inbound({ wa_id: ana, profile_name: 'Bo' })
  expect(next.contact.id).not.toBe(contact.id)
  expect(await move()).toMatchObject({ contact: { id: contact.id } })
  expect((await number.inbound({ wa_id: '15550199999' })).contact.id).toBe(contact.id)
  expect((await number.inbound({ wa_id: ana })).contact.id).toBe(next.contact.id)
  expect(await updatesOf(number.organizationId)).toHaveLength(1)
})

test.each([['nobody else'], ['a contact of its own']])(
  'a number that was given up is free also as it was given, when the new one is of %s',
  async (owner) => {
    const number = await newTold()
    const [given, written, next] = ['+5511987654321', '551187654321', '15550199999']
    const { contact } = await number.open({ phone_number: given })
    await learnRecipients(directory.app, [
      { ...number, traceparent: '', phoneNumber: given, waId: written, sentAt: new Date() },
    ])
    if (owner !== 'nobody else') await number.inbound({ wa_id: next })
    const moved = await number.change('1', { wa_id: written }, { wa_id: next })
    expect(moved).toMatchObject({ contact: { id: contact.id, phone_number: `+${next}` } })
    expect((await number.listContacts({ phone_number: given })).data).toEqual([])
    expect((await number.open({ phone_number: given })).contact.id).not.toBe(contact.id)
    expect((await number.open({ phone_number: `+${next}` })).contact.id).toBe(contact.id)
  },
)

test('a number that is given up as it was given is taken from nobody else who is known by it', async () => {
  const number = await newTold()
  const [given, written] = ['+5511987654321', '551187654321']
  await number.open({ phone_number: given })
  await learnRecipients(directory.app, [
    { ...number, traceparent: '', phoneNumber: given, waId: written, sentAt: new Date() },
  ])
  const { contact: other } = await number.open({ phone_number: '+15550777777' })
  // The platform writes that number as the other's.
  await directory.sql`
    update identities set contact_id = ${other.id}
    where phone_number_id = ${number.phoneNumberId} and kind = 'wa_id' and value = ${given.slice(1)}
  `
  await number.change('1', { wa_id: written }, { wa_id: '15550199999' })
  expect((await number.open({ phone_number: given })).contact.id).toBe(other.id)
})

test('a new number is a change of the conversation, which shows it', async () => {
  const number = await newTold()
  const { conversation } = await number.inbound({ wa_id: ana })
  const before = await number.getConversation(conversation.id)
  await number.change('1', { wa_id: ana }, { wa_id: '15550199999' })
  const after = await number.getConversation(conversation.id)
  expect(after.contact.phone_number).toBe('+15550199999')
  expect(after.updated_at > before.updated_at).toBe(true)
})

test('changes are forgotten after 8 days, and no earlier', async () => {
  const number = await newTold()
  const { organizationId } = number
  await number.inbound({ bsuid: 'US.1' })
  await number.change('old', { bsuid: 'US.1' }, { bsuid: 'US.2' })
  await number.change('young', { bsuid: 'US.2' }, { bsuid: 'US.3' })
  await directory.sql`
    update identity_changes set changed_at = now() - case id when 'old' then interval '193 hours' else '191 hours' end
    where organization_id = ${organizationId}
  `
  await sweepIdentityChanges(directory.sql)
  const left = await directory.sql`select id from identity_changes where organization_id = ${organizationId}`
  expect(left).toEqual([{ id: 'young' }])
})

test('many changes of one organization leave connections to others', async () => {
  const [many, other] = [await newTold(), await newTold()]
  const people = Array.from({ length: 12 }, (_, n) => ({ wa_id: null, bsuid: `US.${n}` }))
  await Promise.all(people.map((person) => many.inbound(person)))
  const { changing } = await directory.sql.begin(async (tx) => {
    await tx`select from contacts where organization_id = ${many.organizationId} for update`
    const changing = Promise.allSettled(
      people.map((person, n) => many.change(String(n), person, { bsuid: `${person.bsuid}N` })),
    )
    await untilSomebodyWaits(tx)
    await other.change('1', { bsuid: 'US.1' }, { bsuid: 'US.2' })
    return { changing }
  })
  expect((await changing).map(({ status }) => status)).toEqual(people.map(() => 'fulfilled'))
  expect(await updatesOf(many.organizationId)).toHaveLength(people.length)
})

test('a new number that somebody takes while it is given makes the two one contact', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana })
  const bo = '15550199999'
  const [changed, taken] = await overtaken(
    directory,
    contact.id,
    () => number.change('wamid.S', { wa_id: ana }, { wa_id: bo }),
    () => number.inbound({ wa_id: bo }),
  )
  expect(taken.contact.id).not.toBe(contact.id)
  expect(changed).toMatchObject({ contact: { id: contact.id, phone_number: `+${bo}` } })
  expect((await number.listContacts()).data).toMatchObject([{ id: contact.id, phone_number: `+${bo}` }])
  expect((await number.inbound({ wa_id: bo })).contact.id).toBe(contact.id)
})

test('a new user id that somebody had for a moment while it was given is the contact’s', async () => {
  const number = await newTold()
  const { contact } = await number.inbound({ wa_id: ana })
  const { contact: third } = await number.inbound({ bsuid: 'US.3' })
  const waId = '15550199999'
  const { changing } = await directory.sql.begin(async (tx) => {
    await tx`savepoint before`
    await claimNames(tx, number, third.id, [{ kind: 'wa_id', value: waId }])
    const changing = overtaken(
      directory,
      contact.id,
      () => number.change('1', { wa_id: ana }, { wa_id: waId, bsuid: 'US.2' }),
      () => number.inbound({ bsuid: 'US.2' }),
    )
    // It has passed over the user id, which is taken, and waits for the number.
    await untilWaitedFor(directory.sql, tx)
    const taker = (await number.listContacts()).data.find(({ bsuid }) => bsuid === 'US.2')
    await managing(directory.app, { ...number, teamId: number.state.team_id }).remove(taker?.id ?? '')
    await tx`rollback to savepoint before`
    return { changing }
  })
  await changing
  expect((await number.inbound({ bsuid: 'US.2' })).contact.id).toBe(contact.id)
})
