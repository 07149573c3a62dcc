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
    backlog_events: 4,
    backlog_oldest_seconds: expect.closeTo(300, -1),
  })
})
