import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, newNumber, overtaken, testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing, tellTeam } from '../testing/managing.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

async function newManaged(changes: Parameters<typeof newNumber>[1] = {}) {
  const number = await newNumber(directory.app, changes)
  await tellTeam(directory, number.organizationId, number.state.team_id)
  return { ...number, ...managing(directory.app, { ...number, teamId: number.state.team_id }) }
}

const updates = async (organizationId: string) =>
  (await eventsOf(directory, organizationId)).filter(({ type }) => type === 'contact.updated')

const gone = { failure: 'resource_not_found' }

test('attaching and detaching change a contact once, and each change is told', async () => {
  const number = await newManaged()
  const [id = ''] = await number.many(1)
  const label = await number.label('VIP')
  const before = await number.getContact(id)
  const attached = { contact_id: id, label_id: label.id, attached: true }
  for (let n = 0; n < 3; n++) expect((await number.attach(id, label.id)).data).toEqual(attached)
  const after = await number.getContact(id)
  expect(after.updated_at > before.updated_at).toBe(true)
  for (let n = 0; n < 3; n++) {
    expect((await number.detach(id, label.id)).data).toEqual({ ...attached, attached: false })
  }
  expect(await updates(number.organizationId)).toMatchObject([
    { data: { contact: { id, changed_fields: ['labels'], updated_at: after.updated_at } } },
    { data: { contact: { id, changed_fields: ['labels'] } } },
  ])
})

test('1,000 contacts at once: each is told of once, and a second time none', async () => {
  const number = await newManaged()
  const ids = await number.crowd(1_000)
  const label = await number.label('VIP')
  await number.attach(ids[7] ?? '', label.id)
  const all = { applied: 1_000, skipped_cross_org: 0, skipped_team_mismatch: 0 }
  expect(await number.bulk(ids.toReversed(), label.id, 'attach')).toEqual(all)
  expect(await number.bulk(ids, label.id, 'attach')).toEqual(all)
  const told = (await updates(number.organizationId)).map(
    ({ data }) => (data as { contact: { id: string } }).contact.id,
  )
  expect(told.toSorted()).toEqual(ids)
  expect(await number.bulk(ids.slice(0, 3), label.id, 'detach')).toMatchObject({ applied: 3 })
  expect(await updates(number.organizationId)).toHaveLength(1_003)
})

test('a change that waited for another one is the later of the two, in answers and events', async () => {
  const number = await newManaged()
  const [first = '', second = ''] = await number.many(2)
  const label = await number.label('VIP')
  const [, renamed] = await overtaken(
    directory,
    first,
    () => number.bulk([first, second], label.id, 'attach'),
    () => number.update(second, { name: 'Ana' }),
  )
  const contact = await number.getContact(second)
  expect(contact.name).toBe('Ana')
  expect(contact.updated_at > renamed.updated_at).toBe(true)
  const told = (await updates(number.organizationId)).map(({ data }) => (data as { contact: typeof contact }).contact)
  expect(told.filter(({ id }) => id === second).map((one) => one.updated_at)).toEqual([
    renamed.updated_at,
    contact.updated_at,
  ])
})

test('the counts add up to the different ids', async () => {
  const number = await newManaged()
  const sibling = await newManaged({ organization_id: number.organizationId })
  const other = await newManaged()
  const [own = '', deleted = ''] = await number.many(2)
  const strangers = [...(await sibling.many(1)), ...(await other.many(1)), newId('ctc'), 'nonsense', '\u2603', '\0', '']
  await number.remove(deleted)
  const label = await number.label('VIP')
  const ids = [own, own, deleted, ...strangers, ...strangers]
  expect(await number.bulk(ids, label.id, 'attach')).toEqual({
    applied: 1,
    skipped_cross_org: 8,
    skipped_team_mismatch: 0,
  })
  expect(await number.bulk([], label.id, 'attach')).toEqual({
    applied: 0,
    skipped_cross_org: 0,
    skipped_team_mismatch: 0,
  })
  expect(await updates(other.organizationId)).toEqual([])
})

test("another team's label is refused for one contact, and counted for many", async () => {
  const number = await newManaged()
  const [id = ''] = await number.many(1)
  const { conversation } = await number.open({ phone_number: '+15550123456' })
  const label = await number.label('VIP', await tellTeam(directory, number.organizationId))
  const refusal = { failure: 'invalid_field_value', param: 'label_id' }
  await expect(number.attach(id, label.id)).rejects.toMatchObject(refusal)
  await expect(number.attachToConversation(conversation.id, label.id)).rejects.toMatchObject(refusal)
  const counts = { applied: 0, skipped_cross_org: 1, skipped_team_mismatch: 1 }
  expect(await number.bulk([id, newId('ctc')], label.id, 'attach')).toEqual(counts)
  expect(await updates(number.organizationId)).toEqual([])
})

test('a label or a contact that is not there, or is not the own one, is not found', async () => {
  const number = await newManaged()
  const other = await newManaged()
  const [id = ''] = await number.many(1)
  const [otherId = ''] = await other.many(1)
  const label = await number.label('VIP')
  const foreign = await other.label('VIP')
  const { conversation } = await number.open({ phone_number: '+15550123456' })
  for (const labelId of [foreign.id, newId('lbl')]) {
    await expect(number.attach(id, labelId)).rejects.toMatchObject(gone)
    await expect(number.detach(id, labelId)).rejects.toMatchObject(gone)
    await expect(number.bulk([id], labelId, 'attach')).rejects.toMatchObject(gone)
    await expect(number.attachToConversation(conversation.id, labelId)).rejects.toMatchObject(gone)
  }
  for (const contactId of [otherId, newId('ctc')]) {
    await expect(number.attach(contactId, label.id)).rejects.toMatchObject(gone)
    await expect(number.detach(contactId, label.id)).rejects.toMatchObject(gone)
  }
  await expect(number.attachToConversation(newId('cnv'), label.id)).rejects.toMatchObject(gone)
})

test("a message shows the contact's labels and the conversation's", async () => {
  const number = await newManaged()
  const { contact, conversation } = await number.inbound({ wa_id: '15550123456' })
  const [vip, paid] = [await number.label('VIP'), await number.label('Paid')]
  await number.attach(contact.id, vip.id)
  await number.attachToConversation(conversation.id, paid.id)
  await number.attachToConversation(conversation.id, paid.id)
  const shown = async () => (await number.inbound({ wa_id: '15550123456' })).labels.map(({ name }) => name)
  expect(await shown()).toEqual(['VIP', 'Paid'])
  await number.deleteLabel(vip.id)
  await number.detachFromConversation(conversation.id, paid.id)
  expect(await shown()).toEqual([])
})

test('a label of one conversation or contact is shown by no other, and detached from no other, nor another with it', async () => {
  const number = await newManaged()
  const [vip, paid, old] = [await number.label('VIP'), await number.label('Paid'), await number.label('Old')]
  const [ana, bo] = [await number.inbound({ wa_id: '15550123456' }), await number.inbound({ wa_id: '15550123457' })]
  for (const { conversation } of [ana, bo])
    for (const { id } of [vip, paid]) await number.attachToConversation(conversation.id, id)
  await number.attach(bo.contact.id, old.id)
  await number.detachFromConversation(ana.conversation.id, vip.id)
  const shown = async (wa_id: string) => (await number.inbound({ wa_id })).labels.map(({ name }) => name)
  expect(await shown('15550123456')).toEqual(['Paid'])
  expect(await shown('15550123457')).toEqual(['VIP', 'Paid', 'Old'])
})

test("those of one organization go one after the other, and another's beside them", async () => {
  const [number, other] = [await newManaged(), await newManaged()]
  const [held = '', free = ''] = await number.many(2)
  const label = await number.label('VIP')
  const others = await other.label('VIP')
  const done: string[] = []
  const ids = await other.many(1)
  const asked: Promise<unknown>[] = []
  await directory.sql.begin(async (tx) => {
    await tx`select id from contacts where id = ${held} for update`
    asked.push(number.bulk([held], label.id, 'attach').then(() => done.push('first')))
    asked.push(number.bulk([free], label.id, 'attach').then(() => done.push('second')))
    for (const operation of ['attach', 'detach'] as const) await other.bulk(ids, others.id, operation)
    expect(done).toEqual([])
  })
  await Promise.all(asked)
  expect(done).toEqual(['first', 'second'])
})
