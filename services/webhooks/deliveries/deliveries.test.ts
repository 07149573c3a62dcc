import { systemCaller } from '@app/shared/bus/ask.ts'
import { firstIdAt, newId } from '@app/shared/values/ids.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { getWebhookDelivery } from './get-webhook-delivery.ts'
import { listWebhookDeliveries, pageOf } from './list-webhook-deliveries.ts'

let webhooks: TestWebhooks
const subscriptions = [newId('wbs'), newId('wbs')] as const
const [mine, rare] = subscriptions
const total = 200_000
const day = 24 * 60 * 60 * 1000
const now = Date.now()

/**
 * 200,000 deliveries of the last two days and a few minutes: all but every 1,000th to one subscription; one in 500 pending,
 * one in 500 failed, one in 500 dead; one in 2,000 of a rare type.
 */
beforeAll(async () => {
  webhooks = await testWebhooks()
  const { sql, organizationId } = webhooks
  const ids = Array.from({ length: total }, (_, n) => {
    const at = new Date(now - 2 * day + Math.floor((n * 2 * day) / total))
    return firstIdAt('wbd', at).slice(0, 14) + String(n).padStart(16, '0')
  })
  for (let from = 0; from < total; from += 20_000) {
    await sql`
      with n as (
        select id, ${from}::int + (row_number() over () - 1)::int as n from unnest(${ids.slice(from, from + 20_000)}::text[]) id
      ), d as (
        insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
        select id, ${organizationId}, case when n % 1000 = 0 then ${rare} else ${mine} end,
          case when n % 2000 = 7 then 'contact.created' else 'message.status' end, 'evt-' || n from n
      ), o as (
        insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, tried, attempts, due_at)
        select id, ${organizationId}, case when n % 1000 = 0 then ${rare} else ${mine} end, now(), 'evt-' || n,
          n % 500 = 2, (n % 500 = 2)::int, now() + interval '1 day' from n where n % 500 in (1, 2)
      ), x as (
        insert into dead_deliveries (id, organization_id, subscription_id, event_type)
        select id, ${organizationId}, case when n % 1000 = 0 then ${rare} else ${mine} end, 'message.status'
        from n where n % 500 = 3
      )
      insert into attempts (delivery_id, number, started_at, duration_ms, response_status)
      select id, 1, now(), 5, case when n % 500 in (2, 3) then 500 else 200 end from n where n % 500 <> 1
    `
  }
  await sql`
    insert into delivered_types (organization_id, event_type)
    values (${organizationId}, 'message.status'), (${organizationId}, 'contact.created'), (${organizationId}, 'contact.updated')
  `
  await sql`analyze deliveries, due_deliveries, dead_deliveries, attempts, lanes`
}, 120_000)
afterAll(() => webhooks.close())

const list = async (query: object, caller = webhooks.caller) => {
  const page = await listWebhookDeliveries(webhooks, { params: {}, query, body: undefined }, caller)
  if ('whole' in page) throw new Error('a list is answered by its handler')
  return page
}
const numbersOf = (page: { data: { event_id: string }[] }) => page.data.map(({ event_id: id }) => Number(id.slice(4)))
const first = (count: number, fits: (n: number) => boolean) => {
  const found: number[] = []
  for (let n = total - 1; n >= 0 && found.length < count; n--) if (fits(n)) found.push(n)
  return found
}

const cases: [string, () => object, (n: number) => boolean][] = [
  ['all', () => ({}), () => true],
  ['of a subscription', () => ({ subscription_id: mine }), (n) => n % 1000 !== 0],
  ['of a rare subscription', () => ({ subscription_id: rare }), (n) => n % 1000 === 0],
  ['of a type', () => ({ event_type: 'message.status' }), (n) => n % 2000 !== 7],
  ['of a rare type', () => ({ event_type: 'contact.created' }), (n) => n % 2000 === 7],
  ['of an absent type', () => ({ event_type: 'contact.updated' }), () => false],
  [
    'of a rare type to a subscription',
    () => ({ event_type: 'contact.created', subscription_id: mine }),
    (n) => n % 2000 === 7,
  ],
  [
    'of an absent type to a subscription',
    () => ({ event_type: 'contact.updated', subscription_id: mine }),
    () => false,
  ],
  ['of an event', () => ({ event_id: 'evt-123456' }), (n) => n === 123_456],
  ['of an event to another subscription', () => ({ event_id: 'evt-123456', subscription_id: rare }), () => false],
  ['of an absent event', () => ({ event_id: 'evt-none', subscription_id: mine }), () => false],
  ['pending', () => ({ status: 'pending' }), (n) => n % 500 === 1],
  ['failed', () => ({ status: 'failed', subscription_id: mine }), (n) => n % 500 === 2],
  ['dead', () => ({ status: 'dead' }), (n) => n % 500 === 3],
  ['dead to a subscription', () => ({ status: 'dead', subscription_id: mine }), (n) => n % 500 === 3],
  ['dead to a subscription that has none', () => ({ status: 'dead', subscription_id: rare }), () => false],
  ['succeeded', () => ({ status: 'succeeded' }), (n) => ![1, 2, 3].includes(n % 500)],
  [
    'succeeded, of which the newest but one are dead, failed and pending',
    () => ({ status: 'succeeded', created_before: new Date(now - 2 * day + 100_005 * 864).toISOString() }),
    (n) => n < 100_005 && ![1, 2, 3].includes(n % 500),
  ],
  ['before a moment', () => ({ created_before: new Date(now - day).toISOString() }), (n) => n < total / 2],
  [
    'between moments, of a rare type',
    () => ({
      event_type: 'contact.created',
      created_after: new Date(now - 1.5 * day).toISOString(),
      created_before: new Date(now - day).toISOString(),
    }),
    (n) => n % 2000 === 7 && n < total / 2 && n > total / 4,
  ],
]

describe('deliveries', () => {
  test.each(cases)('%s: newest first, over all pages', async (_, query, fits) => {
    const page = await list({ ...query(), limit: '7' })
    const expected = first(22, fits)
    expect(numbersOf(page)).toEqual(expected.slice(0, 7))
    expect(page.has_more).toBe(expected.length > 7)
    if (!page.next_cursor) return
    const next = await list({ ...query(), limit: '7', cursor: page.next_cursor })
    expect(numbersOf(next)).toEqual(expected.slice(7, 14))
  })

  test.each(cases)('%s: no table is read through', async (_, query) => {
    const { sql, organizationId } = webhooks
    const statement = pageOf(sql, organizationId, { ...query(), limit: undefined }, null, 26)
    const rows = await sql<{ 'QUERY PLAN': string }[]>`explain (analyze, buffers, timing off) ${statement}`
    const plan = rows.map((row) => Object.values(row)[0]).join('\n')
    const pages = Number(/shared hit=(\d+)/.exec(plan)?.[1]) + Number(/Buffers:.* read=(\d+)/.exec(plan)?.[1] ?? 0)
    expect(pages, plan).toBeLessThan(1_500)
  })
})

test('times are exclusive on both sides', async () => {
  const { data } = await list({ limit: '3' })
  const [newest, second, third] = data
  const between = await list({ created_after: third?.created_at, created_before: newest?.created_at })
  expect(between.data.map(({ id }) => id)).toEqual([second?.id])
})

test('what an event became is listed page by page, and between moments', async () => {
  const { sql, organizationId } = webhooks
  const ids = [3, 2, 1].map((n) => firstIdAt('wbd', new Date(now - n * 1_000)))
  await sql`
    insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
    select id, ${organizationId}, ${rare}, 'message.status', 'evt-to-three' from unnest(${ids}::text[]) id
  `
  onTestFinished(async () => {
    await sql`delete from deliveries where event_id = 'evt-to-three'`
  })
  const event = { event_id: 'evt-to-three' }
  const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id)
  const page = await list({ ...event, limit: '2' })
  const next = await list({ ...event, limit: '2', cursor: page.next_cursor })
  expect([idsOf(page), idsOf(next)]).toEqual([[ids[2], ids[1]], [ids[0]]])
  const between = { created_after: next.data[0]?.created_at, created_before: page.data[0]?.created_at }
  expect(idsOf(await list({ ...event, ...between }))).toEqual([ids[1]])
})

test('a delivery tells its status, its last attempt and, while it is kept, its payload', async () => {
  const [dead] = (await list({ status: 'dead' })).data
  expect(dead).toMatchObject({ status: 'dead', attempt_count: 1, response_status: 500, duration_ms: 5 })
  expect(await webhooks.delivery(dead?.id ?? '')).toEqual({ ...dead, payload: null })
})

test('another organization sees none of them', async () => {
  const stranger = systemCaller(newId('org'))
  const [delivery] = (await list({})).data
  const queries = [
    {},
    { subscription_id: mine },
    { event_id: delivery?.event_id },
    ...['pending', 'failed', 'dead', 'succeeded'].map((status) => ({ status })),
  ]
  for (const query of queries) expect((await list(query, stranger)).data).toEqual([])
  const input = { params: { id: delivery?.id ?? '' }, query: {}, body: undefined }
  const problem = await getWebhookDelivery(webhooks, input, stranger).then(() => null, toProblem)
  expect(problem).toMatchObject({ failure: 'resource_not_found' })
})

test('a cursor of other filters, or of another organization, is refused', async () => {
  const { next_cursor: cursor } = await list({ status: 'succeeded' })
  for (const work of [
    list({ status: 'dead', cursor }),
    list({ status: 'succeeded', cursor }, systemCaller(newId('org'))),
  ]) {
    expect(await work.then(() => null, toProblem)).toMatchObject({ failure: 'invalid_cursor' })
  }
})
