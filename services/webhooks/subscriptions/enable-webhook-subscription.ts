import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { subscriptionResumed } from '@app/shared/contracts/webhook-events.ts'
import { enableWebhookSubscription as contract } from '@app/shared/contracts/webhooks.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { once, storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { renewLane } from '../attempts/wake-lane.ts'
import { payloadsSince } from '../deliveries/retention.ts'
import { mostMatched } from '../replays/match-deliveries.ts'
import { endWaits } from './end-waits.ts'
import { findSubscription, lockSubscription, type SubscriptionRow, toSubscription } from './subscriptions.ts'
import { tellOf } from './tell-of.ts'

export const enableWebhookSubscription: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const stored = await storedAnswer(app.sql, app.sealKeys, caller)
  if (stored) return stored
  const { organizationId } = caller
  await findSubscription(app.sql, organizationId, params.id)
  const wanted = body.url === undefined ? undefined : await app.egress.checkUrl(body.url)
  const work = async (tx: TransactionSql): Promise<Answer<typeof contract>> => {
    const { id } = params
    // Before it is locked: outcomes of attempts, also those of other subscriptions, wait for that lock.
    const count = await replayable(tx, id)
    const before = await lockSubscription(tx, organizationId, id)
    const url = wanted ?? before.url
    if (before.status !== 'active' || url !== before.url) await enable(tx, before, url)
    return { ...toSubscription(await findSubscription(tx, organizationId, id)), replayable_count: count }
  }
  const answer = await app.countInTurn(caller, () => once(app, contract, caller, work))
  app.attempts.wake()
  app.relay.wake()
  return answer
}

async function enable(tx: TransactionSql, { id, status, url: before }: SubscriptionRow, url: string) {
  await tx`
    update subscriptions set status = 'active', url = ${url}, disabled_reason = null, disabled_at = null,
      paused_at = null, updated_at = now()
    where id = ${id}
  `
  await renewLane(tx, id)
  if (url !== before) await endWaits(tx, id)
  if (status !== 'active') await tellOf(tx, subscriptionResumed, [{ id }], 'enabled')
}

/** Its dead deliveries whose payload is still kept, as many as one replay takes: to count millions takes longer than a statement may. */
async function replayable(tx: TransactionSql, id: string) {
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from (
      select from dead_deliveries
      where subscription_id = ${id} and id collate "POSIX" >= ${firstIdAt('wbd', payloadsSince())} limit ${mostMatched}
    ) d
  `
  return row?.count ?? 0
}
