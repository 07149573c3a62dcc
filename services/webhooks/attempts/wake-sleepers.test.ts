import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { createTestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { wakeSleepers } from './attempts.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let sql: Sql
beforeAll(async () => {
  database = await createTestDatabase('webhooks')
  sql = openDatabase(database.url, 'webhooks')
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})

test('lanes that sleep beside a delivery that has a time are woken, but for those that are paused by hand, and no others', async () => {
  const lanes = [
    { id: 'asleep', status: 'active' },
    { id: 'behind its line', status: 'active', hasTime: false },
    { id: 'by hand', status: 'paused' },
    { id: 'by itself', status: 'paused', reason: 'consecutive_failures' },
    { id: 'deleted' },
    { id: 'empty', status: 'active', isEmpty: true },
    { id: 'waits', status: 'active', dueInS: 600 },
  ]
  await sql`
    with l as (
      select * from json_to_recordset(${JSON.stringify(lanes)}::text::json)
        as l(id text, status text, reason text, "hasTime" boolean, "isEmpty" boolean, "dueInS" int)
    ), made as (
      insert into subscriptions (id, organization_id, url, events, status, disabled_reason, created_at, updated_at)
      select id, 'org_1', 'https://example.com/', '{message.sent}', status, reason, now(), now() from l where status is not null
    ), open as (
      insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, due_at)
      select 'wbd_' || id, 'org_1', id, now(), 'evt_1', case when "hasTime" is not false then now() end
      from l where "isEmpty" is not true
    )
    insert into lanes (id, grp, due_at) select id, 'org_1', now() + "dueInS" * interval '1 s' from l
  `
  expect(await wakeSleepers(sql)).toBe(3)
  expect(await sql`select id from lanes where due_at <= now() order by id`).toEqual([
    { id: 'asleep' },
    { id: 'by itself' },
    { id: 'deleted' },
  ])
  expect(await sql`select from lanes where due_at > now()`).toHaveLength(1)
})
