import type { Answer, Caller, Handler, Input, WholeAnswer } from '@app/shared/api/contract.ts'
import { createWebhookReplay as contract } from '@app/shared/contracts/webhook-replays.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { envelopeOf } from '@app/shared/api/envelope.ts'
import { once, storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { invalidField, Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { payloadsSince } from '../deliveries/retention.ts'
import { findSubscription, lockSubscription, refuseDisabled } from '../subscriptions/subscriptions.ts'
import { before, type Matched, matchDeliveries, type Scope } from './match-deliveries.ts'
import { replayColumns, type ReplayRow, toReplay } from './replays.ts'

/**
 * What a replay takes is counted first: a third of a second for 100,000, as measured. So replays of one organization wait for each other.
 * Else they could take all connections, and other organizations' events would wait for one.
 */
export const createWebhookReplay: Handler<App, typeof contract> = async (app, input, caller) => {
  // A dry run stores nothing, and still its key must not be another request's.
  const stored = await storedAnswer(app.sql, app.sealKeys, caller)
  return stored ?? app.countInTurn(caller, () => createCounted(app, input, caller))
}

const createCounted: Handler<App, typeof contract> = async (app, { body }, caller) => {
  const { organizationId } = caller
  if (body.until !== undefined && Date.parse(body.until) <= Date.parse(body.since)) {
    throw invalidField('until', 'until must be after since.')
  }
  if (body.dry_run) {
    refuseDisabled(await findSubscription(app.sql, organizationId, body.subscription_id, 'subscription_id'))
    return dryRun(app, body, caller)
  }
  const answer = await once(app, contract, caller, async (tx) => {
    refuseDisabled(await findSubscription(tx, organizationId, body.subscription_id, 'subscription_id'))
    const scope = scopeOf(organizationId, body)
    const found = await matchDeliveries(tx, scope)
    // After the count, which takes a while: outcomes of attempts, also those of other subscriptions, wait for this lock.
    refuseDisabled(await lockSubscription(tx, organizationId, body.subscription_id))
    return create(tx, scope, found)
  })
  app.replays.wake()
  return answer
}

/** Before anything that is made from now on, so that a job never replays its own deliveries. */
function scopeOf(organizationId: string, body: Input<typeof contract>['body']): Scope {
  const since = new Date(Math.max(Date.parse(body.since), payloadsSince().getTime()))
  const until = new Date(Math.min(body.until === undefined ? Infinity : Date.parse(body.until), Date.now()))
  return {
    id: null,
    organizationId,
    subscriptionId: body.subscription_id,
    source: body.status ?? 'dead',
    eventTypes: body.event_types ?? null,
    position: before(since),
    endId: before(until),
    matchedAt: null,
  }
}

async function create(
  tx: TransactionSql,
  { organizationId, subscriptionId, source, eventTypes, position }: Scope,
  { matched, endId, nextSince }: Matched,
): Promise<Answer<typeof contract>> {
  const id = newId('rpl')
  const [row] = await tx<ReplayRow[]>`
    insert into replays (id, organization_id, subscription_id, source, event_types, position, end_id, matched, next_since,
      created_at)
    values (${id}, ${organizationId}, ${subscriptionId}, ${source}, ${eventTypes}, ${position}, ${endId}, ${matched},
      ${nextSince}, ${timeOf(id)})
    on conflict (subscription_id) where finished_at is null do nothing
    returning ${replayColumns(tx)}
  `
  if (!row) throw new Problem('replay_in_progress')
  return toReplay(row)
}

async function dryRun(app: App, body: Input<typeof contract>['body'], caller: Caller): Promise<WholeAnswer> {
  const { matched, nextSince } = await matchDeliveries(app.sql, scopeOf(caller.organizationId, body))
  const answer: Answer<typeof contract> = {
    id: null,
    object: 'webhook_replay',
    subscription_id: body.subscription_id,
    status: 'queued',
    matched,
    enqueued: 0,
    succeeded: 0,
    failed: 0,
    truncated: nextSince !== null,
    next_since: nextSince?.toISOString() ?? null,
    created_at: new Date().toISOString(),
    finished_at: null,
  }
  return { whole: true, status: 200, body: envelopeOf(contract, answer, caller.requestId), replayed: false }
}
