import { beforeAll, expect, test } from 'vitest'
import { client, type Json, newPhone, until } from './client.ts'

const { api, phone, sendText, inbound } = client()
const customer = newPhone()
let conversationId: string

beforeAll(async () => {
  await inbound(customer, 'first')
  // The contact is there a moment before its window is open.
  await until(async () => expect((await sendText('opened', { to: customer })).status).toBe(200))
  for (let n = 0; n < 11; n++) {
    const answer = await sendText(`list ${n}`, { to: customer })
    expect(answer.status).toBe(200)
    conversationId = answer.body.data.conversation_id
  }
})

async function pages(path: string, limit: number): Promise<Json[]> {
  const items: Json[] = []
  let cursor: string | null = null
  do {
    const next: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { status, body } = await api('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${next}`)
    expect(status).toBe(200)
    items.push(...body.data)
    expect(body.has_more).toBe(body.next_cursor !== null)
    cursor = body.next_cursor
  } while (cursor !== null)
  return items
}

test('a list pages to its end, newest first, each item once, while others are added', async () => {
  const path = `/${phone}/messages?conversation_id=${conversationId}`
  const before = await pages(path, 100)
  const adding = Promise.all([1, 2, 3].map((n) => sendText(`meanwhile ${n}`, { to: customer })))
  const paged = await pages(path, 2)
  await adding
  const ids = paged.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? 1 : -1)))
  expect(ids).toEqual(expect.arrayContaining(before.map(({ id }) => id)))
})

test('filters of messages hold', async () => {
  const all = await pages(`/${phone}/messages?conversation_id=${conversationId}`, 100)
  const inbounds = await pages(`/${phone}/messages?conversation_id=${conversationId}&direction=inbound`, 100)
  expect(inbounds.map(({ content }) => content)).toEqual(['first'])
  const middle = all[5]
  const after = await pages(
    `/${phone}/messages?conversation_id=${conversationId}&created_after=${middle.created_at}`,
    100,
  )
  const before = await pages(
    `/${phone}/messages?conversation_id=${conversationId}&created_before=${middle.created_at}`,
    100,
  )
  expect(after.every(({ created_at }) => created_at > middle.created_at)).toBe(true)
  expect(before.every(({ created_at }) => created_at < middle.created_at)).toBe(true)
  expect(after.length + before.length).toBe(all.filter(({ created_at }) => created_at !== middle.created_at).length)
  await until(async () => {
    const pending = await pages(`/${phone}/messages?conversation_id=${conversationId}&status=pending`, 100)
    const read = await pages(`/${phone}/messages?conversation_id=${conversationId}&status=read`, 100)
    expect([pending.length, read.length]).toEqual([0, 15])
  })
  const elsewhere = await pages(`/${phone}/messages?conversation_id=cnv_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD`, 100)
  expect(elsewhere).toEqual([])
})

test('a cursor is good for its own list alone', async () => {
  const { body } = await api('GET', `/${phone}/messages?limit=1`)
  const cursor: string = body.next_cursor
  const last = cursor.endsWith('A') ? 'B' : 'A'
  for (const path of [
    `/${phone}/messages?limit=1&cursor=${cursor.slice(0, -1)}${last}`,
    `/${phone}/messages?limit=1&cursor=nonsense`,
    `/${phone}/messages?limit=1&cursor=`,
    `/${phone}/messages?limit=1&cursor=${cursor}%00`,
    `/${phone}/messages?limit=1&direction=inbound&cursor=${cursor}`,
    `/${phone}/contacts?limit=1&cursor=${cursor}`,
  ]) {
    expect(await api('GET', path)).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_cursor', param: 'cursor' } },
    })
  }
  expect((await api('GET', `/${phone}/messages?limit=5&cursor=${cursor}`)).status).toBe(200)
})

test('any digits from 1 to 100 are a limit', async () => {
  expect((await api('GET', `/${phone}/messages?limit=0002`)).body.data).toHaveLength(2)
  for (const limit of ['', '0000', '0101', '1.0', '%00']) {
    const refused = await api('GET', `/${phone}/messages?limit=${limit}`)
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_limit', param: 'limit' } } })
  }
})

test('an id of any 26 characters of its alphabet is well formed', async () => {
  for (const path of [
    `/${phone}/messages?conversation_id=cnv_ZZZZZZZZZZZZZZZZZZZZZZZZZZ`,
    '/accounts?status=all&customer_id=cus_ZZZZZZZZZZZZZZZZZZZZZZZZZZ',
    `/${phone}/conversations?contact_id=ctc_8ZZZZZZZZZZZZZZZZZZZZZZZZZ`,
    `/${phone}/contacts?label_id=lbl_ZZZZZZZZZZZZZZZZZZZZZZZZZZ`,
    '/webhook_deliveries?subscription_id=wbs_ZZZZZZZZZZZZZZZZZZZZZZZZZZ',
  ]) {
    expect(await api('GET', path)).toMatchObject({ status: 200, body: { data: [] } })
  }
  for (const path of [`/${phone}/messages/msg_ZZZZZZZZZZZZZZZZZZZZZZZZZZ`, '/labels/lbl_ZZZZZZZZZZZZZZZZZZZZZZZZZZ']) {
    expect(await api('GET', path)).toMatchObject({ status: 404, body: { error: { code: 'resource_not_found' } } })
  }
})

test('a malformed filter is refused with its name', async () => {
  for (const [query, param] of [
    ['conversation_id=nonsense', 'conversation_id'],
    ['direction=sideways', 'direction'],
    ['status=queued', 'status'],
    ['created_after=yesterday', 'created_after'],
  ]) {
    const refused = await api('GET', `/${phone}/messages?${query}`)
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param } } })
  }
})

test('the conversation moves up when a message goes out', async () => {
  const { body } = await api('GET', `/${phone}/conversations/${conversationId}`)
  await new Promise((resolve) => setTimeout(resolve, 5))
  await sendText('newest', { to: customer })
  await until(async () => {
    const now = await api('GET', `/${phone}/conversations/${conversationId}`)
    expect(now.body.data.last_message_at > body.data.last_message_at).toBe(true)
    const list = await api('GET', `/${phone}/conversations?limit=100`)
    expect(list.body.data.map(({ id }: Json) => id)).toContain(conversationId)
  })
})

test('a page of 100 maximal messages goes through', async () => {
  const to = newPhone()
  await inbound(to, 'hi')
  await until(async () => expect((await sendText('𝒳'.repeat(4096), { to })).status).toBe(200))
  await Promise.all(Array.from({ length: 99 }, () => sendText('𝒳'.repeat(4096), { to })))
  const { status, body } = await api('GET', `/${phone}/messages?limit=100`)
  expect(status).toBe(200)
  expect(body.data.filter(({ content }: Json) => content?.length === 8192).length).toBeGreaterThan(90)
})
