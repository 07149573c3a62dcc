import type { Caller } from '@app/shared/api/contract.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { pagesRead } from '@app/test/rows-read.ts'
import { firstIdAt, newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from './app.ts'
import { listWebhookDeliveries } from './deliveries/list-webhook-deliveries.ts'
import { idsIn } from './replays/match-deliveries.ts'
import { listWebhookReplays } from './replays/list-webhook-replays.ts'
import { listWebhookSubscriptions } from './subscriptions/list-webhook-subscriptions.ts'
import { type TestWebhooks, testWebhooks } from './testing/app.ts'

let webhooks: TestWebhooks
const rows = 20_000
const [mine, rare] = [newId('wbs'), newId('wbs')]
const now = Date.now()
const moment = new Date(now - 16_000_000).toISOString()

/** 20,000 of each kind to one organization, a second apart; one in 400 is rare: paused, of another subscription, or five of each of two other types. */
beforeAll(async () => {
  webhooks = await testWebhooks()
  const { sql, organizationId } = webhooks
  const times = Array.from({ length: rows }, (_, n) => firstIdAt('wbd', new Date(now - (rows - n) * 1_000)).slice(4))
  await sql.begin(async (tx) => {
    await tx`create temp table n on commit drop as select id, n::int from unnest(${times}::text[]) with ordinality t(id, n)`
    await tx`
      insert into subscriptions (id, organization_id, url, events, status, created_at, updated_at)
      select 'wbs_' || id, ${organizationId}, 'https://example.com/', '{message.received}',
        case when n % 400 = 0 then 'paused' else 'active' end, now(), now() from n
    `
    await tx`
      insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, status, created_at, finished_at)
      select 'rpl_' || id, ${organizationId}, case when n % 400 = 0 then ${rare} else ${mine} end, 'dead', '', '', 0,
        'completed', now(), now() from n
    `
    await tx`
      insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
      select 'wbd_' || id, ${organizationId}, case when n % 400 = 0 then ${rare} else ${mine} end,
        case n % 4000 when 1 then 'message.status' when 2 then 'message.revoked' else 'message.received' end, 'evt_' || n from n
    `
    await tx`
      insert into dead_deliveries (id, organization_id, subscription_id, event_type)
      select 'wbd_' || id, ${organizationId}, case when n % 400 = 0 then ${rare} else ${mine} end,
        case when n % 4000 = 2 then 'message.revoked' else 'message.received' end from n where n % 2 = 0
    `
    await tx`
      insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, tried, due_at)
      select 'wbd_' || id, ${organizationId}, ${mine}, now(), 'evt_' || n,
        case n % 4000 when 1 then 'message.status' else 'message.received' end, n % 4 = 1, now() + interval '1 day' from n
      where n % 2 = 1
    `
    await tx`insert into delivered_types values (${organizationId}, 'message.received'), (${organizationId}, 'message.revoked')`
  })
  await sql`analyze`
}, 120_000)
afterAll(() => webhooks.close())

type List = (app: App, input: never, caller: Caller) => Promise<object>

/** Lists of deliveries keep their plans; one that is made for a call does as well. */
const plansOf = (list: List) =>
  list === listWebhookDeliveries ? ['force_generic_plan', 'force_custom_plan'] : ['auto']

/** How many rows a list read for its second page, by scans of whole tables and by index, and pages of the indexes by type. */
async function readsOf(list: List, query: object, plans: string) {
  const [firstPage, read] = await webhooks.sql.begin(async (tx) => {
    await tx`select set_config('plan_cache_mode', ${plans}, true)`
    const app = { ...webhooks, sql: tx as unknown as Sql }
    const ask = async (more: object) => {
      const input = { params: {}, query: { limit: '20', ...query, ...more }, body: undefined }
      return (await list(app, input as never, webhooks.caller)) as { data: object[]; next_cursor: string }
    }
    const first = await ask({})
    const before = await readSoFar(tx as unknown as Sql)
    await ask({ cursor: first.next_cursor })
    const after = await readSoFar(tx as unknown as Sql)
    const read = {
      whole: after.whole - before.whole,
      byIndex: after.byIndex - before.byIndex,
      typePages: after.typePages - before.typePages,
    }
    return [first, read] as const
  })
  expect(firstPage.data).toHaveLength(20)
  return read
}

async function readSoFar(sql: Sql) {
  const [row] = await sql<[{ whole: number; byIndex: number }]>`
    select sum(seq_tup_read)::int as whole, coalesce(sum(idx_tup_fetch), 0)::int as by_index from pg_stat_xact_user_tables
    where relname ~ '^(subscriptions|secrets|lanes|replays|deliveries|dead_deliveries|due_deliveries|attempts)'
  `
  return { ...row, typePages: await pagesRead(sql, '^deliveries.*_event_type_id_idx') }
}

const lists: [string, List, object][] = [
  ['subscriptions', listWebhookSubscriptions, {}],
  ['paused subscriptions', listWebhookSubscriptions, { status: 'paused' }],
  ['replays', listWebhookReplays, {}],
  ['replays of a rare subscription', listWebhookReplays, { subscription_id: rare }],
  ['deliveries', listWebhookDeliveries, {}],
  ['deliveries of a subscription', listWebhookDeliveries, { subscription_id: mine }],
  ['dead deliveries', listWebhookDeliveries, { status: 'dead' }],
  ['dead deliveries of a rare subscription', listWebhookDeliveries, { status: 'dead', subscription_id: rare }],
  ['pending deliveries', listWebhookDeliveries, { status: 'pending' }],
  ['failed deliveries of a subscription', listWebhookDeliveries, { status: 'failed', subscription_id: mine }],
  ['dead deliveries of a type', listWebhookDeliveries, { status: 'dead', event_type: 'message.received' }],
  ['deliveries of a type', listWebhookDeliveries, { event_type: 'message.received' }],
  ['deliveries of a rare subscription', listWebhookDeliveries, { subscription_id: rare }],
  [
    'deliveries of a rare subscription and a type',
    listWebhookDeliveries,
    { subscription_id: rare, event_type: 'message.received' },
  ],
  ['deliveries after a moment', listWebhookDeliveries, { created_after: moment }],
  ['deliveries before a moment', listWebhookDeliveries, { created_before: moment }],
  ['dead deliveries after a moment', listWebhookDeliveries, { created_after: moment, status: 'dead' }],
  [
    'deliveries of a rare subscription after a moment',
    listWebhookDeliveries,
    { created_after: moment, subscription_id: rare },
  ],
]

test.each(lists)('a page of %s reads the rows of a page, however many there are', async (_, list, query) => {
  for (const plans of plansOf(list)) {
    const { whole, byIndex, typePages } = await readsOf(list, query, plans)
    expect(whole).toBeLessThan(100)
    expect(typePages).toBeLessThan(100)
    expect(byIndex).toBeGreaterThan(19)
    expect(byIndex).toBeLessThan(400)
  }
})

test.each([20, 20_000])('a page of deliveries reads as little where %i others have some', async (others) => {
  const { sql } = webhooks
  const partitions = await sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = 'deliveries'::regclass
  `
  for (const { name } of partitions) {
    const owners = ['organization_id', 'subscription_id'].map(
      (column) => `alter ${column} set (n_distinct = ${others})`,
    )
    await sql.unsafe(`alter table ${name} ${owners.join(', ')}`)
    await sql.unsafe(`analyze ${name}`)
  }
  for (const [name, list, query] of lists.filter((one) => one[1] === listWebhookDeliveries)) {
    for (const plans of plansOf(list))
      expect([name, (await readsOf(list, query, plans)).byIndex < 400]).toEqual([name, true])
  }
})

test('what a replay of a rare type takes is found without reading the others', async () => {
  const { sql, organizationId } = webhooks
  const span = { position: 'wbd_', endId: 'wbd_~', matchedAt: null, id: null }
  const scope = {
    ...span,
    organizationId,
    subscriptionId: mine,
    source: 'dead',
    eventTypes: ['message.revoked'],
  } as const
  const [row] = await sql<{ 'QUERY PLAN': { Plan: Record<string, unknown> }[] }[]>`
    explain (analyze, buffers, format json) ${idsIn(sql, { ...scope, eventTypes: [...scope.eventTypes] }, 100)}
  `
  const [{ Plan: plan } = { Plan: {} }] = Object.values(row ?? {})[0] ?? []
  const { 'Shared Hit Blocks': hit, 'Shared Read Blocks': read, 'Actual Rows': found } = plan as Record<string, unknown>
  expect(found).toBe(5)
  expect(Number(hit) + Number(read)).toBeLessThan(50)
})

const few: [string, number, object][] = [
  ['a rare type', 5, { event_type: 'message.revoked' }],
  ['an event', 1, { event_id: 'evt_16000' }],
  ['a rare type, dead', 5, { event_type: 'message.revoked', status: 'dead' }],
  ['a rare type, failed', 5, { event_type: 'message.status', status: 'failed' }],
  ['an event, dead', 1, { event_id: 'evt_16000', status: 'dead' }],
  ['an event, failed', 1, { event_id: 'evt_16001', status: 'failed' }],
  ['an event, pending', 1, { event_id: 'evt_16003', status: 'pending' }],
  ['an event, of another status', 0, { event_id: 'evt_16003', status: 'failed' }],
  ['an event of another type', 0, { event_id: 'evt_16003', event_type: 'message.revoked' }],
]

test.each(few)('deliveries of %s are found without reading the others', async (_, count, query) => {
  for (const plans of plansOf(listWebhookDeliveries)) {
    const { found, read, typePages } = await webhooks.sql.begin(async (tx) => {
      await tx`select set_config('plan_cache_mode', ${plans}, true)`
      const app = { ...webhooks, sql: tx as unknown as Sql }
      const before = await readSoFar(app.sql)
      const input = { params: {}, query, body: undefined }
      const { data } = (await listWebhookDeliveries(app, input as never, webhooks.caller)) as { data: object[] }
      const after = await readSoFar(app.sql)
      return {
        found: data.length,
        read: after.whole - before.whole + after.byIndex - before.byIndex,
        typePages: after.typePages - before.typePages,
      }
    })
    expect(found).toBe(count)
    expect(read).toBeLessThan(100)
    expect(typePages).toBeLessThan(100)
  }
})

test.each([
  ['what succeeded', 'dead_deliveries', { status: 'succeeded', subscription_id: rare }],
  ['what is pending of a subscription', 'due_deliveries', { status: 'pending', subscription_id: rare }],
  ['what has failed of a subscription', 'due_deliveries', { status: 'failed', subscription_id: rare }],
  ['what is pending of a type', 'due_deliveries', { status: 'pending', event_type: 'message.revoked' }],
  [
    'what is dead of a subscription and a type',
    'dead_deliveries',
    { status: 'dead', subscription_id: rare, event_type: 'message.revoked' },
  ],
] as const)("one organization's lists of %s leave connections for others", async (_, table, query) => {
  const input = { params: {}, query, body: undefined }
  let ended = 0
  const lists = await webhooks.sql.begin(async (tx) => {
    // They take as long as where most is of others.
    await tx`lock table ${tx(table)}`
    const list = () => Promise.resolve(listWebhookDeliveries(webhooks, input, webhooks.caller)).finally(() => ended++)
    const all = Promise.allSettled(Array.from({ length: 30 }, list))
    await untilSomebodyWaits(tx)
    await webhooks.sql`select 1`
    expect(ended).toBe(0)
    return { all }
  })
  expect((await lists.all).filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
})
