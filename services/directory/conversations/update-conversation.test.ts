import { updateConversation } from '@app/shared/contracts/conversations.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, newNumber, overtaken, testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing } from '../testing/managing.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

async function newConversation() {
  const number = await newNumber(directory.app)
  const asker = { ...number, teamId: number.state.team_id }
  const { conversation } = await number.inbound({ wa_id: '15550123456' })
  await directory.sql`delete from outbox where headers ->> 'organization' = ${number.organizationId}`
  return { number: { ...number, ...managing(directory.app, asker) }, id: conversation.id, asker }
}

const events = async (organizationId: string) =>
  (await eventsOf(directory, organizationId)).map(({ type, data }) => ({ type, data }))

test('each real change is told of as it was, and nothing else is', async () => {
  const { number, id, asker } = await newConversation()
  const conversation = { id, object: 'conversation', phone_number_id: number.phoneNumberId }
  const assigned = (status: string, user: string | null, previous: string | null) => ({
    type: 'conversation.assigned',
    data: {
      conversation: { ...conversation, status },
      assignee: { user_id: user, team_id: asker.teamId, previous_user_id: previous },
    },
  })
  const closed = {
    type: 'conversation.closed',
    data: { conversation: { ...conversation, status: 'resolved', closed_by_user_id: null } },
  }
  expect(await number.updateConversation(id, { status: 'resolved', assigned_to: 'ana' })).toMatchObject({
    status: 'resolved',
    assignee: { id: 'ana', name: null, email: null },
  })
  const { updated_at: changedAt } = await number.updateConversation(id, { status: 'resolved', assigned_to: 'ana' })
  await number.updateConversation(id, { status: 'pending' })
  await number.updateConversation(id, { assigned_to: 'eva' })
  const last = await number.updateConversation(id, { assigned_to: null })
  expect(last).toMatchObject({ status: 'pending', assignee: null })
  expect(last.updated_at > changedAt).toBe(true)
  expect(await events(number.organizationId)).toEqual([
    assigned('resolved', 'ana', null),
    closed,
    assigned('pending', 'eva', 'ana'),
    assigned('pending', null, 'eva'),
  ])
})

test('a change of one is none of another', async () => {
  const { number, id } = await newConversation()
  const { conversation: other } = await number.inbound({ wa_id: '15550123457' })
  const before = await number.getConversation(other.id)
  await number.updateConversation(id, { status: 'resolved', assigned_to: 'ana' })
  expect(await number.getConversation(other.id)).toEqual(before)
})

test('a change that began earlier and ended later does not take the conversation back in time', async () => {
  const { number, id } = await newConversation()
  const { contact } = await number.getConversation(id)
  const [, assigned] = await overtaken(
    directory,
    contact.id,
    () => number.update(contact.id, { name: 'Ana' }),
    () => number.updateConversation(id, { assigned_to: 'ana' }),
  )
  const after = await number.getConversation(id)
  expect(after).toMatchObject({ contact: { name: 'Ana' }, assignee: { id: 'ana' } })
  expect(after.updated_at >= assigned.updated_at).toBe(true)
})

test('300 parallel patches over three instances: one event for each real change', async () => {
  const { number, id, asker } = await newConversation()
  const patches = [1, 2, 3].flatMap(() => {
    const { updateConversation: patch } = managing(directory.newInstance(), asker)
    return Array.from(
      { length: 100 },
      (_, n) => () => patch(id, n % 2 ? { assigned_to: `user ${n % 7}` } : { status: 'resolved' }),
    )
  })
  await Promise.all(patches.map((patch) => patch()))
  const told = await events(number.organizationId)
  expect(told.filter(({ type }) => type === 'conversation.closed')).toHaveLength(1)
  let previous: string | null = null
  for (const { data } of told.filter(({ type }) => type === 'conversation.assigned')) {
    const { assignee } = data as { assignee: { user_id: string; previous_user_id: string | null } }
    expect(assignee.previous_user_id).toBe(previous)
    expect(assignee.user_id).not.toBe(previous)
    previous = assignee.user_id
  }
  expect((await number.getConversation(id)).assignee?.id).toBe(previous)
})

test('an assignee who is a known member has a name', async () => {
  const { number, id } = await newConversation()
  const userId = newId('usr')
  await directory.sql`
    insert into members (organization_id, id, team_id, name, email, told_at)
    values (${number.organizationId}, ${userId}, 'team', 'Eva', 'eva@example.com', now())
  `
  const assignee = { id: userId, name: 'Eva', email: 'eva@example.com' }
  expect(await number.updateConversation(id, { assigned_to: userId })).toMatchObject({ assignee })
  expect(await number.getConversation(id)).toMatchObject({ assignee })
  expect((await number.listConversations()).data).toMatchObject([{ assignee }])
})

test("another number's conversation is not found", async () => {
  const { number, id } = await newConversation()
  const sibling = await newNumber(directory.app, { organization_id: number.organizationId })
  const other = await newNumber(directory.app, { phone_number_id: number.phoneNumberId })
  for (const { organizationId, phoneNumberId, getConversation } of [sibling, other]) {
    await expect(getConversation(id)).rejects.toMatchObject({ failure: 'resource_not_found' })
    const stranger = managing(directory.app, { organizationId, phoneNumberId, teamId: '' })
    const asked = stranger.updateConversation(id, { status: 'resolved' })
    await expect(asked).rejects.toMatchObject({ failure: 'resource_not_found' })
  }
  expect(await events(number.organizationId)).toEqual([])
})

test.each([
  [{}, 'status'],
  [{ status: 'closed' }, 'status'],
  [{ status: null }, 'status'],
  [{ assigned_to: '' }, 'assigned_to'],
  [{ assigned_to: 'x'.repeat(65) }, 'assigned_to'],
  [{ assigned_to: 7 }, 'assigned_to'],
])('refuses %j', (body, param) => {
  expect(updateConversation.body.safeParse(body).error?.issues[0]?.path).toEqual([param])
})
