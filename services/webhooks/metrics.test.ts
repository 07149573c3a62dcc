import { startGauges } from '@app/test/gauges.ts'
import { expect, test } from 'vitest'
import { readStanding } from './metrics.ts'

test('what stands in the tables is told: who is not active, what waits, how much of it is held, and for how long', async () => {
  const { sql, probes, told } = await startGauges('webhooks')
  await sql`
    insert into subscriptions (id, organization_id, url, events, status, created_at, updated_at)
    select 'wbs_' || n, 'org_' || n, 'https://example.com/', '{message.sent}', status, now(), now()
    from unnest('{active,paused,paused,disabled}'::text[]) with ordinality s(status, n)
  `
  await sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id)
    select 'wbd_' || n, 'org_' || to_whom, 'wbs_' || to_whom, now(), 'evt_' || n
    from unnest('{1,1,1,2,3}'::int[]) with ordinality d(to_whom, n)
  `
  await sql`
    insert into event_backlog (organization_id, event_id, head, payload, since)
    select organization, 'evt_' || seconds, '{}', '{}', now() - seconds * interval '1 s'
    from (values ('org_1', 120), ('org_1', 60), ('org_2', 300), ('org_2', 20)) b(organization, seconds)
  `
  readStanding({ sql, probes })
  expect(await told(/^svc_webhook_(\S+) (\S+)$/gm)).toEqual({
    'subscriptions{status="paused"}': 2,
    'subscriptions{status="disabled"}': 1,
    open_deliveries: 5,
    held_deliveries: 2,
    waiting_deliveries: 3,
    backlog_events: 4,
    backlog_oldest_seconds: expect.closeTo(300, -1),
  })
})

test('however many are held, those that wait at others are told, and those that one of many paused subscriptions holds', async () => {
  const { sql, probes, told } = await startGauges('webhooks')
  await sql`
    insert into subscriptions (id, organization_id, url, events, status, created_at, updated_at)
    select 'wbs_' || n, 'org_1', 'https://example.com/', '{message.sent}', case n when 7 then 'active' else 'paused' end, now(), now()
    from generate_series(1, 300) n
  `
  await sql`
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id)
    select 'wbd_' || n, 'org_1', case when n <= 6000 then 'wbs_7' else 'wbs_300' end, now(), 'evt_' || n
    from generate_series(1, 18000) n
  `
  readStanding({ sql, probes })
  expect(await told(/^svc_webhook_(\w+_deliveries) (\S+)$/gm)).toEqual({
    open_deliveries: 10_000,
    held_deliveries: 10_000,
    waiting_deliveries: 6_000,
  })
})
