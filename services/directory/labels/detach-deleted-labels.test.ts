import { openDatabase } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { startStepProxy } from '@app/test/step-proxy.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { eventsOf, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing, tellTeam } from '../testing/managing.ts'
import { detachDeletedLabels, startDetaching } from './detach-deleted-labels.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

type Known = Awaited<ReturnType<typeof newNumber>>

const asker = (number: Known) => ({ ...number, teamId: number.state.team_id })

async function newManaged() {
  const number = await newNumber(directory.app)
  await tellTeam(directory, number.organizationId, number.state.team_id)
  return { ...number, ...managing(directory.app, asker(number)) }
}

type Managed = Awaited<ReturnType<typeof newManaged>>

async function updatedIds(organizationId: string) {
  const events = await eventsOf(directory, organizationId)
  return events
    .filter(({ type }) => type === 'contact.updated')
    .map(({ data }) => (data as { contact: { id: string } }).contact.id)
}

const attachments = async (labelId: string) => {
  const [row] = await directory.sql<{ count: number }[]>`
    select (select count(*) from contact_labels where label_id = ${labelId})::int
      + (select count(*) from conversation_labels where label_id = ${labelId})::int as count
  `
  return row?.count
}

async function detachAll(app = directory.app) {
  while ((await detachDeletedLabels(app)) > 0);
}

/** 120 contacts and a conversation with a label, which is then deleted. */
async function deletedLabel() {
  const number = await newManaged()
  const ids = await number.crowd(120)
  const { conversation } = await number.open({ phone_number: '+15550123456' })
  const label = await number.label('VIP')
  const other = await number.label('Other')
  for (const some of [ids.slice(0, 60), ids.slice(60)]) await number.bulk(some, label.id, 'attach')
  await number.bulk(ids.slice(0, 10), other.id, 'attach')
  for (const { id } of [label, other]) await number.attachToConversation(conversation.id, id)
  await directory.sql`delete from outbox where headers ->> 'organization' = ${number.organizationId}`
  await number.deleteLabel(label.id)
  return { number, ids, label, other }
}

test('a label whose deletion is committed without an answer is deleted, and its detaching is begun', async () => {
  const number = await newManaged()
  const label = await number.label('VIP')
  const proxy = await startStepProxy(directory.url)
  const sql = openDatabase(proxy.url, 'directory', { max: 1 })
  await sql`select 1`
  onTestFinished(async () => {
    await sql.end({ timeout: 1 })
    proxy.close()
  })
  let woken = 0
  const detaching = { wake: () => void woken++, stop: () => Promise.resolve() }
  const { steps } = proxy.count()
  const { deleteLabel } = managing({ ...directory.newInstance(sql), detaching }, asker(number))
  await expect(deleteLabel(newId('lbl'))).rejects.toMatchObject({ failure: 'resource_not_found' })
  proxy.count({ at: steps(), when: 'after' })
  expect((await deleteLabel(label.id)).data).toMatchObject({ id: label.id, deleted: true })
  expect(woken).toBe(1)
})

test('at once nobody finds by the label, and then each contact is told of once', async () => {
  const { number, ids, label, other } = await deletedLabel()
  expect((await number.listContacts({ label_id: label.id })).data).toEqual([])
  await expect(number.attach(ids[0] ?? '', label.id)).rejects.toMatchObject({ failure: 'resource_not_found' })
  await detachAll()
  expect((await updatedIds(number.organizationId)).toSorted()).toEqual(ids)
  expect(await attachments(label.id)).toBe(0)
  expect(await attachments(other.id)).toBe(11)
  expect(await directory.sql`select id from labels where id = ${label.id}`).toHaveLength(0)
  expect(await detachDeletedLabels(directory.app)).toBe(0)
})

test('a label that is just being attached is deleted after that, and both are told', async () => {
  const number = await newManaged()
  const [id = ''] = await number.many(1)
  const label = await number.label('VIP')
  const { attaching, deleting } = await directory.sql.begin(async (tx) => {
    await tx`select id from contacts where id = ${id} for no key update`
    const begun = number.attach(id, label.id)
    await untilSomebodyWaits(directory.sql)
    const deleted = number.deleteLabel(label.id)
    await untilSomebodyWaits(directory.sql, 2)
    return { attaching: begun, deleting: deleted }
  })
  expect((await attaching).data).toMatchObject({ attached: true })
  await deleting
  await detachAll()
  expect(await updatedIds(number.organizationId)).toEqual([id, id])
})

test('a crash in the middle loses no event and repeats none; two at once share the work', async () => {
  const { number, ids, label } = await deletedLabel()
  let batches = 0
  const dying = { ...directory.app, relay: { ...directory.app.relay, wake: () => crashAt(++batches) } }
  await expect(detachDeletedLabels(dying)).rejects.toThrow('crash')
  const half = await updatedIds(number.organizationId)
  expect(half.length).toBeGreaterThan(0)
  expect(await attachments(label.id)).toBe(121 - half.length)
  await Promise.all([detachAll(), detachAll(directory.newInstance())])
  expect((await updatedIds(number.organizationId)).toSorted()).toEqual(ids)
  expect(await attachments(label.id)).toBe(0)
})

test('what an instance leaves behind is taken up by another within ten seconds, though nobody deletes a label', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout')
  const detaching = startDetaching(directory.app, directory.app.relay)
  onTestFinished(async () => {
    timers.mockRestore()
    await detaching.stop()
  })
  // A loop tells its next turn that it is a poll.
  const polls = () => timers.mock.calls.flatMap(([, ms, isPoll]: unknown[]) => (isPoll === true ? [Number(ms)] : []))
  await until(() => expect(polls()).toHaveLength(1))
  expect(polls()[0]).toBeLessThan(10_000)
})

test("a label on many contacts leaves its organization's endpoints room for its messages: 50 contacts are told of a second", async () => {
  const { number } = await deletedLabel()
  const told = async () => (await updatedIds(number.organizationId)).length
  const startedAt = performance.now()
  const detaching = startDetaching(directory.app, directory.app.relay)
  onTestFinished(detaching.stop)
  await until(async () => expect(await told()).toBeGreaterThanOrEqual(100))
  // Also where somebody deletes one label after the other.
  detaching.wake()
  const seconds = Math.ceil((performance.now() - startedAt) / 1_000)
  expect(await told()).toBeLessThanOrEqual(seconds * 50 + 50)
})

test("a label on many contacts does not hold up another organization's", async () => {
  const [many, few] = [await newManaged(), await newManaged()]
  for (const [number, count] of [
    [many, 60],
    [few, 1],
  ] as const) {
    const label = await number.label('VIP')
    await number.bulk(await number.crowd(count), label.id, 'attach')
    await directory.sql`delete from outbox where headers ->> 'organization' = ${number.organizationId}`
    await number.deleteLabel(label.id)
  }
  await detachAll()
  const told = await directory.sql<{ organization: string }[]>`
    select headers ->> 'organization' as organization from outbox
    where headers ->> 'organization' in (${many.organizationId}, ${few.organizationId}) order by seq
  `
  expect(told).toHaveLength(61)
  expect(told.at(-1)).toEqual({ organization: many.organizationId })
})

test('nor does one whose detaching fails, on a contact that somebody holds', async () => {
  const [first, second] = [await newManaged(), await newManaged()].toSorted((a, b) =>
    a.organizationId < b.organizationId ? -1 : 1,
  ) as [Managed, Managed]
  const ids: string[] = []
  for (const number of [first, second]) {
    const [label, contacts] = [await number.label('VIP'), await number.many(1)]
    await number.bulk(contacts, label.id, 'attach')
    await number.deleteLabel(label.id)
    ids.push(...contacts)
  }
  await directory.sql.begin(async (tx) => {
    await tx`select id from contacts where id = ${ids[0] ?? ''} for update`
    await expect(detachDeletedLabels(directory.app)).rejects.toThrow('lock timeout')
    expect(await directory.sql`select contact_id from contact_labels where contact_id = any(${ids}::text[])`).toEqual([
      { contactId: ids[0] },
    ])
  })
  await detachAll()
  expect(await directory.sql`select contact_id from contact_labels where contact_id = any(${ids}::text[])`).toEqual([])
})

function crashAt(batch: number) {
  if (batch === 1) throw new Error('crash')
}
