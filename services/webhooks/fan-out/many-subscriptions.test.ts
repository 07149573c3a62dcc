import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { matching, numberAudiences } from './audiences.ts'
import { type EventRow, recordEvents, toRow } from './record-events.ts'

let webhooks: TestWebhooks
const count = 10_000
const bigOrganization = newId('org')

beforeAll(async () => {
  webhooks = await testWebhooks()
  await webhooks.sql`
    insert into subscriptions (id, organization_id, url, events, status, created_at, updated_at)
    select 'wbs_' || lpad(n::text, 26, '0'), ${bigOrganization}, 'https://example.com/', '{message.received}', 'paused', now(), now()
    from generate_series(1, ${count}::int) n
  `
})
afterAll(() => webhooks.close())

const counts = async () => {
  const [row] = await webhooks.sql`
    select (select count(*)::int from events) as events, (select count(*)::int from deliveries) as deliveries,
      (select count(*)::int from due_deliveries) as due, (select count(*)::int from lanes) as lanes
  `
  return row
}

test('an event that none of ten thousand subscriptions selects costs no row; one that all select is a delivery to each', async () => {
  await webhooks.emit(
    { organizationId: bigOrganization, type: 'contact.created' },
    { type: 'message.received' },
    { organizationId: bigOrganization, type: 'message.received' },
  )
  await until(async () => expect(await counts()).toEqual({ events: 1, deliveries: count, due: count, lanes: count }))
  const [row] = await webhooks.sql`select count(distinct subscription_id)::int as subscriptions from due_deliveries`
  expect(row).toEqual({ subscriptions: count })
})

test('an organization has no more of them, so that an event for all can be recorded; another one may have its own', async () => {
  const url = 'https://93.184.216.34/hook'
  await expect(webhooks.subscribe({ url }, systemCaller(bigOrganization))).rejects.toMatchObject({
    failure: 'too_many_webhook_subscriptions',
  })
  expect(await webhooks.subscribe({ url })).toMatchObject({ url, status: 'active' })
})

/** One for each of ten thousand numbers. */
async function oneForEachNumber() {
  const organization = newId('org')
  await webhooks.sql`
    insert into subscriptions (id, organization_id, url, events, phone_number_ids, status, created_at, updated_at)
    select ${newId('wbs')} || n, ${organization}, 'https://example.com/', '{message.received}', array[n::text],
      'paused', now(), now()
    from generate_series(1, ${count}::int) n
  `
  return organization
}

test('customers’ events of one number are recorded although each of ten thousand numbers has a subscription of its own', async () => {
  const organization = await oneForEachNumber()
  const rows = Array.from({ length: 256 }, (_, n) => event(organization, { phone: '1', line: `customer ${n}` }))
  expect(await recordEvents(webhooks.sql, rows.flat())).toMatchObject([{ count: 256 }])
})

interface Plan {
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Join Filter'?: number
  Plans?: Plan[]
}

/** The rows of all its steps, those that a step threw away among them. */
function rowsOf(plan: Plan): number {
  const { 'Rows Removed by Filter': filtered = 0, 'Rows Removed by Join Filter': unjoined = 0, Plans = [] } = plan
  return (
    (plan['Actual Rows'] + filtered + unjoined) * plan['Actual Loops'] +
    Plans.reduce((sum, one) => sum + rowsOf(one), 0)
  )
}

/** To find who gets the events. */
async function rowsReadFor(events: EventRow[]) {
  const { sql } = webhooks
  await sql`analyze subscriptions`
  const [{ 'QUERY PLAN': explained }] = await sql<[{ 'QUERY PLAN': [{ Plan: Plan }] }]>`
    explain (analyze, timing off, format json) ${matching(sql, numberAudiences(events).audiences)}
  `
  return rowsOf(explained[0].Plan)
}

test('an event of one of those numbers looks at no subscription of the others', async () => {
  const organization = await oneForEachNumber()
  expect(await rowsReadFor(event(organization, { phone: '7' }))).toBeLessThan(25)
})

test('events of many of those numbers are each for those that select its number, and compared with no others', async () => {
  const { sql } = webhooks
  const organization = await oneForEachNumber()
  const others = [
    { id: 'all', type: 'message.received', numbers: null },
    { id: 'all, too', type: 'message.received', numbers: [] },
    { id: 'two', type: 'message.received', numbers: ['1', '2', '10001'] },
    { id: 'another type', type: 'contact.created', numbers: null },
  ]
  for (const { id, type, numbers } of others) {
    await sql`
      insert into subscriptions (id, organization_id, url, events, phone_number_ids, status, created_at, updated_at)
      values (${id}, ${organization}, 'https://example.com/', ${[type]}, ${numbers}, 'paused', now(), now())
    `
  }
  const rows = Array.from({ length: 255 }, (_, n) => event(organization, { phone: String(n + 1) }))
  const withoutNumber = event(organization, { type: 'contact.created' })
  const events = [...rows, withoutNumber].flat()
  // The one without a number is for all numbers, and looks at all.
  expect(await rowsReadFor(events)).toBeLessThan(count * 4)
  const made = await recordEvents(sql, events)
  expect(new Map(made.map(({ type, count: of }) => [type, of]))).toEqual(
    new Map([
      ['message.received', 255 + 255 + 255 + 2],
      ['contact.created', 1],
    ]),
  )
  const got = await sql`
    select subscription_id as id, count(*)::int from deliveries
    where organization_id = ${organization} and subscription_id = any(${others.map(({ id }) => id)}) group by 1 order by 1
  `
  expect(got).toEqual([
    { id: 'all', count: 255 },
    { id: 'all, too', count: 255 },
    { id: 'another type', count: 1 },
    { id: 'two', count: 2 },
  ])
})

test('events of many numbers of two organizations, recorded together, go to their own subscriptions alone', async () => {
  const { sql } = webhooks
  const organizations = [newId('org'), newId('org')]
  const usual = { url: 'https://example.com/', events: ['message.received'], status: 'paused' }
  const subscriptions = organizations.flatMap((organization) => [
    { ...usual, organization_id: organization, id: `all of ${organization}`, phone_number_ids: null },
    { ...usual, organization_id: organization, id: `one of ${organization}`, phone_number_ids: ['7'] },
  ])
  const at = new Date()
  await sql`insert into subscriptions ${sql(subscriptions.map((one) => ({ ...one, created_at: at, updated_at: at })))}`
  const numbers = Array.from({ length: 20 }, (_, n) => String(n + 1))
  const rows = organizations.flatMap((organization) => numbers.flatMap((phone) => event(organization, { phone })))
  await recordEvents(sql, rows)
  const got = await sql`
    select organization_id, subscription_id, count(*)::int from deliveries
    where organization_id = any(${organizations}) group by 1, 2 order by 1, 2
  `
  expect(got).toEqual(
    organizations.toSorted().flatMap((organization) => [
      { organizationId: organization, subscriptionId: `all of ${organization}`, count: 20 },
      { organizationId: organization, subscriptionId: `one of ${organization}`, count: 1 },
    ]),
  )
})

function event(organization: string, of: { type?: string; phone?: string; line?: string }): EventRow[] {
  const headers = { organization, event: newId('evt'), type: 'message.received', source: 'svc' as const, ...of }
  const subject = 'event.messaging.message-received'
  const row = toRow({ subject, headers: { ...headers, at: new Date().toISOString() }, payload: Buffer.from('{}') })
  return row ? [row] : []
}
