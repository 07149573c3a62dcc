import { systemCaller } from '@app/shared/bus/ask.ts'
import { firstIdAt, newId } from '@app/shared/values/ids.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../app.ts'
import { explainSubscription } from './explain-subscription.ts'

let database: TestDatabase
let app: App
beforeAll(async () => {
  database = await createTestDatabase('webhooks')
  app = { sql: database.sql } as App
  await put('delivered_types', { organization_id: organization, event_type: 'message.sent' })
})
afterAll(() => database.drop())

const organization = newId('org')
const past = new Date('2026-01-02T03:04:05.000Z')
const soon = new Date(Date.now() + 600_000)

async function historyOf(id: string) {
  const answer = await explainSubscription(app, { params: {}, query: {}, body: { id } }, systemCaller())
  if ('whole' in answer) throw new Error('an explanation is answered by its handler')
  return answer.history
}

const put = (table: string, row: object) => app.sql`insert into ${app.sql(table)} ${app.sql(row as never)}`

async function newSubscription(fields: object = {}, lane: object = {}) {
  const id = newId('wbs')
  const row = { id, organization_id: organization, url: 'https://example.com/', events: ['message.sent'] }
  await put('subscriptions', { ...row, created_at: past, updated_at: past, ...fields })
  await put('lanes', { id, grp: organization, ...lane })
  return id
}

async function newDelivery(subscription: string) {
  const row = {
    id: newId('wbd'),
    organization_id: organization,
    subscription_id: subscription,
    event_type: 'message.sent',
  }
  await put('deliveries', { ...row, event_id: newId('evt') })
  return row
}

const wait = async (subscription: string, fields: object = {}) =>
  put('due_deliveries', {
    ...(await newDelivery(subscription)),
    event_at: past,
    event_id: 'evt_1',
    due_at: soon,
    ...fields,
  })

const bySelf = { status: 'paused', disabled_reason: 'consecutive_failures', paused_at: past }
const disabled = { status: 'disabled', disabled_at: past }

test.each<[string, object, object, string]>([
  ['active', {}, {}, 'is active: 1 delivery waits'],
  [
    'that fails',
    {},
    { failures: 6, failing_since: past, paced_until: soon },
    'is active, and its endpoint rests: it has failed 6 times in a row: 1 delivery waits',
  ],
  [
    'that asked for a rest',
    {},
    { paced_until: soon },
    'is active, and its endpoint rests, as it has asked for: 1 delivery waits',
  ],
  [
    'paused by its owner',
    { status: 'paused' },
    {},
    'is paused by its owner: 1 delivery waits until it is resumed, for 7 days at most',
  ],
  [
    'that paused itself',
    bySelf,
    { failures: 21, failing_since: past, paced_until: soon },
    'has paused itself: its endpoint has failed 21 times in a row, and is asked now and then: 1 delivery waits, the first success resumes it, and 120 hours without one disable it',
  ],
  [
    'disabled by the operator',
    { ...disabled, disabled_reason: 'operator' },
    {},
    'is disabled, since the operator has disabled it: it gets no events until its organization enables it; 1 delivery waits, to be given up',
  ],
  [
    'that is gone',
    { ...disabled, disabled_reason: 'gone' },
    {},
    'is disabled, since its endpoint said that it is gone for good (410): it gets no events until its organization enables it; 1 delivery waits, to be given up',
  ],
  [
    'that failed for days',
    { ...disabled, disabled_reason: 'failing_too_long' },
    {},
    'is disabled, since it failed for days: it gets no events until its organization enables it; 1 delivery waits, to be given up',
  ],
])('a subscription says how it stands, and since when: one %s', async (_state, fields, lane, words) => {
  const id = await newSubscription(fields, lane)
  await wait(id)
  const history = await historyOf(id)
  expect(history[0]).toMatchObject({ at: past.toISOString(), what: 'was created' })
  expect(history.at(-1)).toMatchObject({ at: null, what: words, details: { pending: 1, failed: 0 } })
  const since = history.filter(({ at }) => at === past.toISOString()).map(({ what }) => what)
  if ('failing_since' in lane)
    expect(since).toContainEqual(expect.stringMatching(/^its endpoint failed, as in all \d+ /))
  if ('paused_at' in fields)
    expect(since).toContain('paused itself, or has another URL since: its endpoint had failed for too long')
  if ('disabled_at' in fields) expect(since).toContainEqual(expect.stringMatching(/^was disabled, since /))
})

test('when something is delivered next is told: when it is due, and not before its endpoint may be asked', async () => {
  const later = new Date(soon.getTime() + 60_000)
  const next = async (fields: object, lane: object) => {
    const id = await newSubscription(fields, lane)
    await wait(id)
    return (await historyOf(id)).at(-1)?.details?.['next_at']
  }
  expect(await next({}, {})).toEqual(soon)
  expect(await next({}, { paced_until: later })).toEqual(later)
  expect(await next(bySelf, { paced_until: later })).toEqual(later)
  expect(await next({ status: 'paused' }, {})).toBeUndefined()
  expect(await next(disabled, {})).toBeUndefined()
  const id = await newSubscription()
  await wait(id, { begun_at: past, due_at: past })
  await wait(id)
  expect((await historyOf(id)).at(-1)?.details).toMatchObject({ being_delivered: 1, next_at: soon })
  const paused = (await historyOf(await newSubscription(bySelf))).at(-1)?.details
  expect(paused?.['disabled_at_the_latest']).toEqual(new Date('2026-01-07T03:04:05.000Z'))
})

test('of an endpoint that is well again it is not told when it failed', async () => {
  const history = await historyOf(await newSubscription({}, { failures: 0, failing_since: past, paced_until: past }))
  expect(history.map(({ what }) => what)).toEqual(['was created', 'is active: nothing waits'])
})

test('its last failures are told, of what is tried again and of what was given up', async () => {
  const id = await newSubscription()
  const [open, dead] = [await newDelivery(id), await newDelivery(id)]
  for (let n = 0; n < 5; n++) await wait(id)
  await put('due_deliveries', { ...open, event_at: past, event_id: 'evt_1', due_at: soon, tried: true })
  await put('dead_deliveries', { ...dead, error_code: null })
  const failed = { started_at: past, duration_ms: 9 }
  await put('attempts', { ...failed, delivery_id: open.id, number: 1, response_status: 500 })
  await put('attempts', { ...failed, delivery_id: open.id, number: 2, response_status: 503 })
  await put('attempts', { ...failed, delivery_id: dead.id, number: 12, error_code: 'timeout', error_message: 'slow' })
  const attempts = (await historyOf(id)).filter(({ what }) => what.startsWith('attempt '))
  expect(attempts.toSorted((a, b) => b.what.localeCompare(a.what))).toMatchObject([
    { at: past.toISOString(), what: 'attempt 2 to deliver it: 503', details: { delivery_id: open.id } },
    { what: 'attempt 12 to deliver it: timeout', details: { delivery_id: dead.id, error_message: 'slow' } },
  ])
})

test('one that was deleted says so, and when, as far as the records know', async () => {
  const id = newId('wbs')
  const delivery = await newDelivery(id)
  expect(await historyOf(id)).toMatchObject([
    {
      what: 'is there no more: it was deleted while nothing waited for it, so that the records do not know when',
      details: { organization_id: organization },
    },
  ])
  await put('dead_deliveries', { ...delivery, error_code: 'subscription_deleted', died_at: past })
  await put('dead_deliveries', { ...(await newDelivery(id)), error_code: null, died_at: new Date(0) })
  expect(await historyOf(id)).toMatchObject([
    { at: past.toISOString(), what: 'was deleted by its owner: what waited for it is given up' },
    { at: null, what: 'is there no more: it was deleted', details: { given_up: 1 } },
  ])
  await expect(historyOf(newId('wbs'))).rejects.toThrow('No such resource')
})

test('of one that was deleted after it had given up much, only what may have been open then is read', async () => {
  const id = newId('wbs')
  const month = firstIdAt('wbd', new Date(Date.now() - 30 * 86_400_000)).slice(0, 14)
  await app.sql`
    insert into dead_deliveries (id, organization_id, subscription_id, event_type)
    select ${month} || lpad(n::text, 16, '0'), ${organization}, ${id}, 'message.sent' from generate_series(1, 2000) n
  `
  await put('dead_deliveries', { ...(await newDelivery(id)), error_code: 'subscription_deleted', died_at: past })
  const [history, read] = await app.sql.begin(async (tx) => {
    const told = await explainSubscription(
      { sql: tx } as unknown as App,
      { params: {}, query: {}, body: { id } },
      systemCaller(),
    )
    const [row] = await tx`select pg_stat_get_xact_tuples_fetched('dead_deliveries'::regclass)::int as fetched`
    return [told, row?.['fetched']] as const
  })
  expect(history).toMatchObject({
    history: expect.arrayContaining([expect.objectContaining({ details: expect.objectContaining({ given_up: 1 }) })]),
  })
  expect(read).toBeLessThan(50)
})

test('one that is disabled while nothing waits has nothing to give up', async () => {
  const id = await newSubscription({ ...disabled, disabled_reason: 'gone' })
  expect((await historyOf(id)).at(-1)?.what).toMatch(/enables it; nothing waits$/)
})
