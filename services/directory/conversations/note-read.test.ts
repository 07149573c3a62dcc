import { systemCaller } from '@app/shared/bus/ask.ts'
import { consumers } from '@app/shared/events/provision.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { at } from '../testing/moments.ts'
import { noteRead } from './note-read.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const ana = '15550123456'

async function newReading() {
  const number = await newNumber(directory.app)
  const caller = systemCaller(number.organizationId)
  return {
    ...number,
    read: (conversation_id: string, read: number, up_to?: string, event_id = newId('evt')) =>
      noteRead(directory.app, { params: {}, query: {}, body: { event_id, conversation_id, read, up_to } }, caller),
    unreadIn: async (conversationId: string) => (await number.getConversation(conversationId)).unread_count,
  }
}

test('what is read in a conversation that ended counts where it goes on, also after another merge', async () => {
  const number = await newReading()
  const first = await number.inbound({ bsuid: 'US.1' })
  await number.inbound({ bsuid: 'US.1' })
  const second = await number.inbound({ wa_id: ana })
  await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  await number.read(first.conversation.id, 1)
  expect(await number.unreadIn(second.conversation.id)).toBe(3)
  const third = await number.inbound({ bsuid: 'US.9' })
  await telling(directory.app, number).change('1', { bsuid: 'US.9' }, { bsuid: 'US.9', wa_id: ana })
  expect(await number.unreadIn(third.conversation.id)).toBe(4)
  await number.read(first.conversation.id, 1)
  await number.read(second.conversation.id, 1)
  expect(await number.unreadIn(third.conversation.id)).toBe(2)
})

test('what is asked and told of one receipt is taken off once, whichever comes first, and that of another organization beside it', async () => {
  const [number, other] = [await newReading(), await newReading()]
  const [{ conversation }, { conversation: others }] = [
    await number.inbound({ wa_id: ana }),
    await other.inbound({ wa_id: ana }),
  ]
  await number.inbound({ wa_id: ana })
  const asked = newId('evt')
  await number.read(conversation.id, 1, undefined, asked)
  const names = await directory.sql`
    select event_id from handled_events where consumer = ${consumers.directoryMessagesRead.name} and event_id like ${`%${asked}`}
  `
  // As `consume` names the event.
  expect(names).toEqual([{ eventId: `${number.organizationId}:${asked}` }])
  await number.read(conversation.id, 1, undefined, asked)
  expect(await number.unreadIn(conversation.id)).toBe(1)
  await other.read(others.id, 1, undefined, asked)
  expect(await other.unreadIn(others.id)).toBe(0)
})

test('no more is read than was unread', async () => {
  const number = await newReading()
  const { conversation } = await number.inbound({ wa_id: ana })
  await number.read(conversation.id, 2)
  expect(await number.unreadIn(conversation.id)).toBe(0)
})

test('what is read while the conversation is being merged counts where it goes on', async () => {
  const number = await newReading()
  const [ended, live] = [await number.inbound({ bsuid: 'US.1' }), await number.inbound({ wa_id: ana })]
  let reading: Promise<unknown> = Promise.resolve()
  await directory.sql.begin(async (tx) => {
    await tx`
      update conversations set contact_id = ${live.contact.id}, merged_into = ${live.conversation.id}, unread_count = 0
      where id = ${ended.conversation.id}
    `
    await tx`update conversations set unread_count = 2 where id = ${live.conversation.id}`
    reading = number.read(ended.conversation.id, 1)
    await tx`select pg_sleep(0.2)`
  })
  await reading
  expect(await number.unreadIn(live.conversation.id)).toBe(1)
})

test('what was read up to a time is read in the conversations that ended, too, each message once', async () => {
  const number = await newReading()
  const first = await number.inbound({ bsuid: 'US.1', sent_at: at(1) })
  await number.inbound({ bsuid: 'US.1', sent_at: at(2) })
  const second = await number.inbound({ wa_id: ana, sent_at: at(3) })
  await number.inbound({ wa_id: ana, bsuid: 'US.1', sent_at: at(4) })
  const third = await number.inbound({ bsuid: 'US.9', sent_at: at(8) })
  await telling(directory.app, number).change('1', { bsuid: 'US.9' }, { bsuid: 'US.9', wa_id: ana })
  const live = third.conversation.id
  expect(await number.unreadIn(live)).toBe(5)
  await number.read(second.conversation.id, 1, at(3))
  expect(await number.unreadIn(live)).toBe(2)
  await number.read(first.conversation.id, 2, at(2))
  expect(await number.unreadIn(live)).toBe(2)
  await number.inbound({ bsuid: 'US.9', sent_at: at(9) })
  await number.read(live, 2, at(9))
  expect(await number.unreadIn(live)).toBe(0)
  await number.inbound({ bsuid: 'US.9', sent_at: at(10) })
  await number.read(second.conversation.id, 1, at(4))
  expect(await number.unreadIn(live)).toBe(1)
})

test.each([
  ['before it', 4, 2],
  ['at it', 5, 2],
  ['after it', 6, 4],
])(
  'of a conversation in which others had ended it counts when its own newest message came: %s',
  async (_, newest, left) => {
    const number = await newReading()
    const { change } = telling(directory.app, number)
    await number.inbound({ bsuid: 'US.1', sent_at: at(8) })
    await number.inbound({ bsuid: 'US.2', sent_at: at(8) })
    await number.inbound({ wa_id: ana, sent_at: at(1) })
    await change('1', { wa_id: ana }, { wa_id: ana, bsuid: 'US.1' })
    await change('2', { bsuid: 'US.1' }, { bsuid: 'US.2' })
    await number.inbound({ wa_id: ana, sent_at: at(newest) })
    const { conversation: live } = await number.inbound({ bsuid: 'US.9', sent_at: at(5) })
    await change('3', { bsuid: 'US.9' }, { bsuid: 'US.9', wa_id: ana })
    expect(await number.unreadIn(live.id)).toBe(5)
    await number.read(live.id, 1, at(5))
    expect(await number.unreadIn(live.id)).toBe(left)
  },
)

test('of a conversation that began without a message it counts, too, when its own newest message came', async () => {
  const number = await newReading()
  const { change } = telling(directory.app, number)
  await number.inbound({ bsuid: 'US.1', sent_at: at(8) })
  await number.open({ phone_number: `+${ana}` })
  await change('1', { wa_id: ana }, { wa_id: ana, bsuid: 'US.1' })
  await number.inbound({ wa_id: ana, sent_at: at(4) })
  const { conversation: live } = await number.inbound({ bsuid: 'US.9', sent_at: at(5) })
  await change('2', { bsuid: 'US.9' }, { bsuid: 'US.9', wa_id: ana })
  expect(await number.unreadIn(live.id)).toBe(3)
  await number.read(live.id, 1, at(5))
  expect(await number.unreadIn(live.id)).toBe(1)
})

test('a receipt that reads nothing new reads what came before it in a conversation that has ended since, once', async () => {
  const number = await newReading()
  await number.inbound({ bsuid: 'US.1', sent_at: at(1) })
  const live = (await number.inbound({ wa_id: ana, sent_at: at(2) })).conversation.id
  await number.read(live, 1, at(2))
  await telling(directory.app, number).change('1', { wa_id: ana }, { wa_id: ana, bsuid: 'US.1' })
  expect(await number.unreadIn(live)).toBe(1)
  await number.read(live, 0, at(2))
  expect(await number.unreadIn(live)).toBe(0)
  await number.inbound({ wa_id: ana, sent_at: at(3) })
  const before = await number.getConversation(live)
  await number.read(live, 0, at(3))
  expect(await number.getConversation(live)).toEqual(before)
})

test('a conversation that ended before it was kept how many were unread there is read as it was', async () => {
  const number = await newReading()
  const ended = await number.inbound({ bsuid: 'US.1' })
  const live = await number.inbound({ wa_id: ana })
  await number.inbound({ wa_id: ana, bsuid: 'US.1' })
  await directory.sql`update conversations set unread_there = null`
  await number.read(live.conversation.id, 2, new Date(Date.now() + 1_000).toISOString())
  expect(await number.unreadIn(live.conversation.id)).toBe(1)
  await number.read(ended.conversation.id, 1)
  expect(await number.unreadIn(live.conversation.id)).toBe(0)
})

test('a receipt in a conversation that is just being merged waits for nobody who waits for it', async () => {
  const number = await newReading()
  const live = await number.inbound({ wa_id: ana })
  const ending = await number.inbound({ bsuid: 'US.1' })
  const ids = [live.conversation.id, ending.conversation.id]
  let reading: Promise<unknown> | undefined
  let locking: Promise<unknown> | undefined
  await directory.sql.begin(async (tx) => {
    await tx`
      update conversations set merged_into = ${live.conversation.id}, contact_id = ${live.contact.id}, unread_there = 1
      where id = ${ending.conversation.id}
    `
    reading = number.read(ending.conversation.id, 1)
    await untilSomebodyWaits(directory.sql)
    // As another merge does.
    locking = directory.sql`
      select id from conversations where organization_id = ${number.organizationId} and id = any(${ids}::text[])
      order by id for no key update
    `.execute()
    await untilSomebodyWaits(directory.sql, 2)
  })
  await Promise.all([reading, locking])
  expect(await number.unreadIn(live.conversation.id)).toBe(0)
})
