import { toProblem } from '@app/shared/api/problem.ts'
import { newId, newIdAt } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { expect } from 'vitest'
import { cancelWebhookReplay } from '../replays/cancel-webhook-replay.ts'
import { createWebhookReplay } from '../replays/create-webhook-replay.ts'
import { getWebhookReplay } from '../replays/get-webhook-replay.ts'
import { oneSubscription } from './one-subscription.ts'

type Body = Parameters<typeof createWebhookReplay>[1]['body']

const hourAgo = () => new Date(Date.now() - 3_600_000).toISOString()

export const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (err: unknown) => toProblem(err).failure,
  )

/** A subscription of its own for each test of a file, with deliveries that died and are replayed. */
export function replaysOfOne() {
  const one = oneSubscription(['message.received', 'contact.created'])
  const replay = (replayId: string | null, caller = one.webhooks.caller) =>
    one.webhooks.ask(getWebhookReplay, { params: { id: replayId ?? '' } }, caller)

  /** Dead deliveries, a millisecond apart, whose payloads are kept. Oldest first. */
  async function die(count: number, { type = 'message.received', ageMs = 60_000, subscription = one.id } = {}) {
    const { organizationId, sql } = one.webhooks
    const rows = Array.from({ length: count }, (_, n) => {
      const at = new Date(Date.now() - ageMs + n)
      return { id: newIdAt('wbd', at), at, event: newId('evt') }
    })
    await sql`
      with r as (
        select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(id text, at timestamptz, event text)
      ), e as (
        insert into events (at, organization_id, event_id, type, source, payload)
        select at, ${organizationId}, event, ${type}, 'svc', '{"id":"' || event || '"}' from r
      ), d as (
        insert into deliveries (id, organization_id, subscription_id, event_type, event_id)
        select id, ${organizationId}, ${subscription}, ${type}, event from r
      )
      insert into dead_deliveries (id, organization_id, subscription_id, event_type)
      select id, ${organizationId}, ${subscription}, ${type} from r
    `
    return rows
  }

  return Object.assign(one, {
    die,
    replay,
    replayMany: (body: Partial<Body> = {}, caller = one.webhooks.caller) =>
      one.webhooks.ask(createWebhookReplay, { body: { subscription_id: one.id, since: hourAgo(), ...body } }, caller),
    cancel: (replayId: string | null, caller = one.webhooks.caller) =>
      one.webhooks.ask(cancelWebhookReplay, { params: { id: replayId ?? '' } }, caller),
    completed: (replayId: string | null) =>
      until(async () => {
        const now = await replay(replayId)
        expect(now).toMatchObject({ status: 'completed', finished_at: expect.any(String) })
        return now
      }),
    pause: (status: 'active' | 'paused') => one.patch({ status }),
  })
}
