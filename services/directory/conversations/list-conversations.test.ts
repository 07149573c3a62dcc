import { afterAll, beforeAll, expect, test } from 'vitest'
import { asking, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { at } from '../testing/moments.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

type Number = Awaited<ReturnType<typeof newNumber>>
type Query = NonNullable<Parameters<Number['listConversations']>[0]>

/** Conversations of new people whose newest message came at these seconds; null: none came. */
async function withConversations(seconds: (number | null)[]) {
  const number = await newNumber(directory.app)
  const ids: string[] = []
  for (const [n, second] of seconds.entries()) {
    const { conversation } = await number.open({ phone_number: `+1555012300${n}` })
    ids.push(conversation.id)
    const time = second === null ? null : at(second)
    await directory.sql`update conversations set last_message_at = ${time} where id = ${conversation.id}`
  }
  return { number, ids }
}

async function allPages(number: Number, query: Query) {
  const seen: string[] = []
  let cursor: string | null | undefined
  do {
    const page = await number.listConversations({ ...query, ...(cursor && { cursor }) })
    seen.push(...page.data.map(({ id }) => id))
    cursor = page.next_cursor
  } while (cursor)
  return seen
}

test('newest message first, those without one last, equals by id, whatever the page size', async () => {
  const { number, ids } = await withConversations([10, null, 30, 10, null, 20, null])
  const order = [2, 5, 3, 0, 6, 4, 1].map((n) => ids[n])
  for (const limit of ['1', '2', '3', '5', '100']) expect(await allPages(number, { limit })).toEqual(order)
})

test('filters by status and by contact, over pages', async () => {
  const { number, ids } = await withConversations([10, 20, 30, null, 50])
  const [first = '', , third = '', fourth = ''] = ids
  await directory.sql`update conversations set status = 'pending' where id = any(${[first, third, fourth]}::text[])`
  expect(await allPages(number, { status: 'pending', limit: '1' })).toEqual([third, first, fourth])
  expect(await allPages(number, { status: 'resolved' })).toEqual([])
  const { contact } = await number.getConversation(third)
  expect(await allPages(number, { contact_id: contact.id })).toEqual([third])
  expect(await allPages(number, { contact_id: contact.id, status: 'open' })).toEqual([])
})

test('a number without conversations has an empty page, a number that is not there is not found', async () => {
  const number = await newNumber(directory.app)
  expect(await number.listConversations()).toEqual({ data: [], has_more: false, next_cursor: null })
  const nowhere = asking(directory.app, number.organizationId, '999999999999')
  await expect(nowhere.listConversations()).rejects.toMatchObject({ failure: 'resource_not_found' })
})

test('a cursor does not hold for another filter', async () => {
  const { number } = await withConversations([10, 20])
  const { next_cursor: cursor } = await number.listConversations({ limit: '1' })
  if (cursor === null) throw new Error('no second page')
  await expect(number.listConversations({ cursor, status: 'open' })).rejects.toMatchObject({
    failure: 'invalid_cursor',
  })
})
