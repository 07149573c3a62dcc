import { systemCaller } from '@app/shared/bus/ask.ts'
import { firstIdAt, newId } from '@app/shared/values/ids.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../app.ts'
import { explainOrganizationDeliveries } from './explain-organization-deliveries.ts'
import { explainReplay } from './explain-replay.ts'

let database: TestDatabase
let app: App
beforeAll(async () => {
  database = await createTestDatabase('webhooks')
  app = { sql: database.sql } as App
})
afterAll(() => database.drop())

const past = new Date('2026-01-02T03:04:05.000Z')
const soon = new Date(Date.now() + 600_000)

async function historyOf(handler: typeof explainReplay | typeof explainOrganizationDeliveries, id: string) {
  const answer = await handler(app, { params: {}, query: {}, body: { id } }, systemCaller())
  if ('whole' in answer) throw new Error('an explanation is answered by its handler')
  return answer.history
}

const put = (table: string, row: object) => app.sql`insert into ${app.sql(table)} ${app.sql(row as never)}`

async function newSubscription(fields: object = {}, lane: object = {}, organization = newId('org')) {
  const id = newId('wbs')
  const row = { id, organization_id: organization, url: 'https://example.com/', events: ['message.sent'] }
  await put('subscriptions', { ...row, created_at: past, updated_at: past, ...fields })
  await put('lanes', { id, grp: organization, ...lane })
  return { id, organization }
}

async function newReplay({ id: subscription_id, organization }: { id: string; organization: string }, fields: object) {
  const id = newId('rpl')
  const range = { position: firstIdAt('wbd', past).slice(0, 14), end_id: firstIdAt('wbd', soon).slice(0, 14) }
  const counts = { matched: 9, enqueued: 5, succeeded: 3, failed: 1 }
  const row = { id, organization_id: organization, subscription_id, source: 'dead', created_at: past }
  await put('replays', { ...row, ...range, ...counts, status: 'running', ...fields })
  return id
}

/** Deliveries that wait for their first attempt. */
async function wait({ id, organization }: { id: string; organization: string }, replay: string | null, count: number) {
  const row = { organization_id: organization, subscription_id: id, event_at: past, event_id: 'evt_1', due_at: soon }
  for (let n = 0; n < count; n++) await put('due_deliveries', { ...row, id: newId('wbd'), replay_id: replay })
}

const bySelf = { status: 'paused', disabled_reason: 'consecutive_failures', paused_at: past }
const finished = { finished_at: past }

test.each<[string, object, object, object, string | RegExp]>([
  ['that goes on', {}, {}, {}, 'is running: it goes on, at most 5 at a time'],
  ['whose turn has not come', {}, {}, { status: 'queued' }, 'is queued: it goes on, at most 5 at a time'],
  [
    'whose owner has paused the subscription',
    { status: 'paused' },
    {},
    {},
    'is running: its owner has paused its subscription',
  ],
  [
    'whose subscription paused itself',
    bySelf,
    { failures: 21 },
    {},
    /^is running: its subscription has paused itself: .* 21 times/,
  ],
  [
    'whose endpoint rests',
    {},
    { failures: 6, paced_until: soon },
    {},
    'is running: its endpoint rests: it has failed 6 times in a row',
  ],
  [
    'whose subscription is disabled',
    { status: 'disabled', disabled_reason: 'gone' },
    {},
    {},
    /about to be cancelled, since its subscription is disabled: .*\(410\)$/,
  ],
  ['that is over', {}, {}, { status: 'completed', ...finished, succeeded: 4 }, 'is completed'],
  [
    'that has enqueued all',
    {},
    {},
    { status: 'completed', ...finished },
    'is completed; 1 of what it has enqueued is still to be delivered',
  ],
  [
    'that was cancelled',
    {},
    {},
    { status: 'cancelled', ...finished, succeeded: 4 },
    /^was cancelled, .* when 5 of 9 were enqueued$/,
  ],
])('a replay says how far it is, and what holds it up: one %s', async (_state, subscription, lane, fields, words) => {
  const owner = await newSubscription(subscription, lane)
  const history = await historyOf(explainReplay, await newReplay(owner, fields))
  const about = { organization_id: owner.organization, subscription_id: owner.id }
  expect(history[0]).toMatchObject({ at: past.toISOString(), what: 'was asked for: 9 dead deliveries', details: about })
  expect(history.at(-1)?.what).toMatch(words)
  const counts = { succeeded: 3, failed: 1, ...fields }
  expect(history.at(-1)?.details).toMatchObject({
    matched: 9,
    enqueued: 5,
    under_way: 5 - counts.succeeded - counts.failed,
    position: past,
    until: soon,
  })
  await app.sql`delete from replays`
})

test('a replay whose endpoint is slow is told from one that others share the queue with', async () => {
  const owner = await newSubscription()
  const id = await newReplay(owner, {})
  await wait(owner, id, 5)
  await app.sql`update due_deliveries set tried = true where id in (select min(id) from due_deliveries)`
  await newReplay(owner, finished)
  expect((await historyOf(explainReplay, id)).at(-1)?.what).toBe('is running: it goes on, at most 5 at a time')
  await wait(owner, id, 1)
  expect((await historyOf(explainReplay, id)).at(-1)?.what).toMatch(
    /^is running: it goes as fast as its endpoint answers: 5 wait for their first attempt, the most that it may have waiting$/,
  )
  const another = await newReplay(await newSubscription(), {})
  expect((await historyOf(explainReplay, another)).at(-1)?.what).toBe(
    'is running: it goes on, at most 5 at a time, while 2 organizations have replays under way',
  )
  const others = await Promise.all(Array.from({ length: 23 }, async () => newReplay(await newSubscription(), {})))
  expect((await historyOf(explainReplay, others[0] ?? '')).at(-1)?.what).toBe(
    'is running: it goes on, at most 2 at a time, while 25 organizations have replays under way',
  )
  await newReplay({ ...owner, id: newId('wbs') }, {})
  expect((await historyOf(explainReplay, id)).at(-1)?.what).toMatch(
    /^is running: .* the most that it may have waiting, with 2 replays of its organization under way, while 25 organizations have replays under way$/,
  )
  await app.sql`delete from subscriptions where id = ${owner.id}`
  expect((await historyOf(explainReplay, id)).at(-1)?.what).toMatch(/since its subscription was deleted$/)
  await expect(historyOf(explainReplay, newId('rpl'))).rejects.toThrow('No such resource')
  await app.sql`delete from replays`
})

test('an organization tells how its subscriptions stand, and what waits for them', async () => {
  const organization = newId('org')
  const told = async () => (await historyOf(explainOrganizationDeliveries, organization)).at(-1)
  expect(await told()).toMatchObject({
    at: null,
    what: 'it has no webhook subscription: nobody gets its events; no delivery waits',
  })
  const active = await newSubscription({}, {}, organization)
  const paused = await newSubscription({ status: 'paused' }, {}, organization)
  await newReplay(active, {})
  await newReplay(active, finished)
  await wait(active, null, 1)
  await app.sql`update due_deliveries set tried = true where subscription_id = ${active.id}`
  await wait(active, null, 1)
  await wait(await newSubscription(), null, 1)
  expect(await told()).toEqual({
    at: null,
    what: '1 of 2 webhook subscriptions is active; 2 deliveries wait',
    details: { not_active: [paused.id], pending: 1, failed: 1, events_in_the_backlog: 0, replays_under_way: 1 },
  })
  await app.sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, due_at)
    select 'wbd_' || n, ${organization}, ${active.id}, now(), 'evt_1', now() from generate_series(1, 10000) n
  `
  expect((await told())?.what).toBe('1 of 2 webhook subscriptions is active; at least 10001 deliveries wait')
})
