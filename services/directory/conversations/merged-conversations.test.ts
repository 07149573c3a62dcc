import type { TransactionSql } from '@app/shared/database/database.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing, tellTeam } from '../testing/managing.ts'
import { noteSentMessages } from './note-sent-messages.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

/** Two conversations of one person, whom nobody knows to be one before `both`. */
async function twoConversations() {
  const asked = await newNumber(directory.app)
  const asker = { ...asked, teamId: asked.state.team_id }
  await tellTeam(directory, asked.organizationId, asker.teamId)
  const number = { ...asked, ...managing(directory.app, asker) }
  const { conversation: live } = await number.inbound({ wa_id: '15550123456' })
  const { conversation: ended } = await number.inbound({ bsuid: 'US.1' })
  const both = () => number.inbound({ wa_id: '15550123456', bsuid: 'US.1' })
  return { number, live, ended, both }
}

/** A conversation that goes on, and one that ended in it, both open before. */
async function mergedConversations({ status }: { status?: 'pending' | 'resolved' } = {}) {
  const { number, live, ended, both } = await twoConversations()
  if (status) await number.updateConversation(ended.id, { status })
  await directory.sql`delete from outbox where headers ->> 'organization' = ${number.organizationId}`
  await both()
  return { number, live: live.id, ended: ended.id, both }
}

const closedIn = async (organizationId: string) =>
  (await eventsOf(directory, organizationId)).filter(({ type }) => type === 'conversation.closed')

test('a conversation that ended in another is resolved and told of as closed, so that no inbox keeps it open', async () => {
  const { number, live, ended } = await mergedConversations({ status: 'pending' })
  expect((await number.getConversation(ended)).status).toBe('resolved')
  expect((await number.listConversations({ status: 'open' })).data.map(({ id }) => id)).toEqual([live])
  expect(await closedIn(number.organizationId)).toMatchObject([
    { data: { conversation: { id: ended, status: 'resolved', closed_by_user_id: null } } },
  ])
})

test('one that was resolved before is not told of again', async () => {
  const { number } = await mergedConversations({ status: 'resolved' })
  expect(await closedIn(number.organizationId)).toEqual([])
})

test.each([
  ['resolved', 'pending'],
  ['pending', 'resolved'],
] as const)('one that was %s goes on as pending when the other was %s', async (status, other) => {
  const { number, live, ended, both } = await twoConversations()
  await number.updateConversation(live.id, { status })
  await number.updateConversation(ended.id, { status: other })
  await both()
  expect((await number.getConversation(live.id)).status).toBe('pending')
})

test('its status and assignee are changed where it goes on, which is answered and told of', async () => {
  const { number, live, ended } = await mergedConversations()
  const changed = await number.updateConversation(ended, { status: 'pending', assigned_to: 'ana' })
  expect(changed).toMatchObject({ id: live, status: 'pending', assignee: { id: 'ana' } })
  expect(await number.getConversation(live)).toEqual(changed)
  expect(await number.getConversation(ended)).toMatchObject({ status: 'resolved', assignee: null })
  expect((await eventsOf(directory, number.organizationId)).at(-1)).toMatchObject({
    type: 'conversation.assigned',
    data: { conversation: { id: live, status: 'pending' }, assignee: { user_id: 'ana', previous_user_id: null } },
  })
  expect(directory.changed).toContain(live)
})

test('labels are attached and detached where it goes on', async () => {
  const { number, live, ended, both } = await mergedConversations()
  const { id } = await number.label('VIP')
  expect((await number.attachToConversation(ended, id)).data.conversation_id).toBe(live)
  expect((await both()).labels).toMatchObject([{ id }])
  expect((await number.detachFromConversation(ended, id)).data.conversation_id).toBe(live)
  expect((await both()).labels).toEqual([])
})

test('a message that is sent after the merge moves up the one that goes on', async () => {
  const { number, live, ended } = await mergedConversations()
  const before = await number.getConversation(ended)
  const sentAt = new Date(Date.now() + 60_000).toISOString()
  await noteSentMessages(directory.sql, [
    { organization_id: number.organizationId, conversation_id: ended, sent_at: sentAt },
  ])
  expect((await number.getConversation(live)).last_message_at).toBe(sentAt)
  expect(await number.getConversation(ended)).toEqual(before)
})

test('a change that waits for the merge is made where the conversation goes on', async () => {
  const { number, live, ended, both } = await twoConversations()
  const { id: labelId } = await number.label('VIP')
  const [changed, attached] = await Promise.all([
    number.updateConversation(ended.id, { assigned_to: 'ana' }),
    number.attachToConversation(ended.id, labelId),
    both(),
  ])
  expect(changed.assignee?.id).toBe('ana')
  expect(attached.data.attached).toBe(true)
  expect((await number.getConversation(live.id)).assignee?.id).toBe('ana')
  expect((await number.inbound({ bsuid: 'US.1' })).labels).toMatchObject([{ id: labelId }])
})

test('a change of a conversation that is just ending in another waits for nobody in a circle who takes both', async () => {
  const { number, live, ended } = await twoConversations()
  const { sql } = directory
  const ids = [live.id, ended.id]
  const lockBoth = (tx: TransactionSql) => tx`
    select id from conversations where id = any(${ids}) order by id for no key update
  `
  const { changing, others } = await sql.begin(async (tx) => {
    await lockBoth(tx)
    await tx`update conversations set merged_into = ${live.id} where id = ${ended.id}`
    const changed = number.updateConversation(ended.id, { assigned_to: 'ana' })
    await untilSomebodyWaits(sql)
    // As messages in both, or whoever renames their contact.
    const locked = sql.begin(lockBoth)
    await untilSomebodyWaits(sql, 2)
    return { changing: changed, others: locked }
  })
  expect(await others).toHaveLength(2)
  expect(await changing).toMatchObject({ id: live.id, assignee: { id: 'ana' } })
})
