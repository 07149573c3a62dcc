import { amount } from '@app/test/fuzz/seed.ts'
import { until } from '@app/test/until.ts'
import { expect } from 'vitest'
import { enableWebhookSubscription } from '../subscriptions/enable-webhook-subscription.ts'
import { hurry } from './random-acts.ts'
import { askSurely, type Scene, type Tenant } from './scene.ts'

/** All endpoints are well, all subscriptions active, and nothing has to wait: then nothing is left to do, on either instance. */
export async function settle(scene: Scene): Promise<void> {
  scene.endpoints.calm()
  for (const tenant of scene.tenants) await resumeAll(tenant)
  // Those with a line are fanned out one by one, some ten a second where others want the processor, and each connection that is
  // lost costs a while.
  const withinMs = amount(60_000, 240_000)
  await until(async () => expect(await notFannedOut(scene)).toEqual({ backlog: 0, missing: [] }), withinMs)
  await until(async () => {
    for (const tenant of scene.tenants) await hurry(scene, tenant)
    for (const { attempts, replays } of scene.apps) {
      attempts.wake()
      replays.wake()
    }
    expect(await leftOf(scene)).toEqual({
      open: [],
      held: 0,
      replays: 0,
      busy: [0, 0],
    })
    // Less than a call may take: nothing is left to whoever finds that its holder is gone.
  }, 20_000)
}

async function resumeAll({ instances: [instance], lasting, passing }: Tenant) {
  if (!instance) return
  for (const id of [...lasting, ...passing]) {
    await askSurely(instance, enableWebhookSubscription, { params: { id }, body: {} })
  }
}

async function leftOf({ sql, apps }: Scene) {
  const [row] = await sql<{ held: number; replays: number }[]>`
    select (select count(*)::int from lanes where held_until > now() or due_at is not null) as held,
      (select count(*)::int from replays where finished_at is null) as replays
  `
  const open = await sql`
    select to_jsonb(d) as delivery, to_jsonb(l) as lane, s.status, s.disabled_reason from due_deliveries d
    left join lanes l on l.id = d.subscription_id left join subscriptions s on s.id = d.subscription_id
    order by d.id limit 3
  `
  return { ...row, open: [...open], busy: apps.map(({ attempts }) => attempts.busy()) }
}

/** Events of which a subscription that was always there has no delivery: ten of them, and how many wait. */
async function notFannedOut({ sql, tenants }: Scene) {
  const [row] = await sql<{ backlog: number }[]>`select count(*)::int as backlog from event_backlog`
  const missing = await sql<{ subscriptionId: string; eventId: string }[]>`
    select s as subscription_id, e as event_id
    from json_to_recordset(${JSON.stringify(tenants.map(expectedOf))}::text::json) as t(subscriptions text[], events text[])
    cross join unnest(t.subscriptions) s cross join unnest(t.events) e
    where not exists (
      select from deliveries where subscription_id = s and event_id = e and replayed_from is null
    ) limit 10
  `
  return { ...row, missing: [...missing] }
}

const expectedOf = ({ lasting, payloads }: Tenant) => ({ subscriptions: lasting, events: [...payloads.keys()] })
