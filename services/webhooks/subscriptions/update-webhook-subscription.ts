import { isDeepStrictEqual } from 'node:util'
import type { Handler, Input } from '@app/shared/api/contract.ts'
import { subscriptionPaused, subscriptionResumed } from '@app/shared/contracts/webhook-events.ts'
import type { updateWebhookSubscription as contract } from '@app/shared/contracts/webhooks.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { renewLane, retakeLane } from '../attempts/wake-lane.ts'
import { endWaits } from './end-waits.ts'
import { ownNumbers } from './own-numbers.ts'
import {
  findSubscription,
  lockSubscription,
  refuseDisabled,
  type SubscriptionRow,
  toSubscription,
} from './subscriptions.ts'
import { tellOf } from './tell-of.ts'

type Changes = Input<typeof contract>['body']

export const updateWebhookSubscription: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { organizationId } = caller
  refuseDisabled(await findSubscription(app.sql, organizationId, params.id))
  const [phone_number_ids, url] = await Promise.all([
    ownNumbers(app, body.phone_number_ids, caller),
    body.url === undefined ? undefined : app.egress.checkUrl(body.url),
  ])
  const row = await app.sql.begin(async (tx) => {
    const before = await lockSubscription(tx, organizationId, params.id)
    refuseDisabled(before)
    const isSet = await set(tx, before, { ...body, url, phone_number_ids })
    const isSwitched = await switchByHand(tx, before, body.status)
    const isMoved = url !== undefined && url !== before.url
    if (isMoved && !isSwitched) await moveLane(tx, before)
    if (isMoved) await endWaits(tx, before.id)
    return isSet || isSwitched ? findSubscription(tx, organizationId, params.id) : before
  })
  app.attempts.wake()
  app.relay.wake()
  return toSubscription(row)
}

/** What its owner decided, but for the status; false when nothing is different. */
async function set(tx: TransactionSql, before: SubscriptionRow, changes: Changes) {
  const kept = pick(before)
  const asked = {
    url: changes.url ?? kept.url,
    events: changes.events ?? kept.events,
    description: changes.description === undefined ? kept.description : changes.description,
    phoneNumberIds: changes.phone_number_ids === undefined ? kept.phoneNumberIds : changes.phone_number_ids,
  }
  if (isDeepStrictEqual(asked, kept)) return false
  await tx`
    update subscriptions set url = ${asked.url}, events = ${asked.events}, description = ${asked.description},
      phone_number_ids = ${asked.phoneNumberIds}, updated_at = now(),
      -- The days after which one that has paused itself is disabled are those of its URL.
      paused_at = case when url = ${asked.url} then paused_at when paused_at is not null then now() end
    where id = ${before.id}
  `
  return true
}

/**
 * What was held against the old URL is not held against the new one. One that has paused itself keeps its count: without it, it
 * would not be probed.
 */
const moveLane = (tx: TransactionSql, { id, status }: SubscriptionRow) =>
  status === 'active' ? renewLane(tx, id) : retakeLane(tx, id)

const pick = ({ url, events, description, phoneNumberIds }: SubscriptionRow) => ({
  url,
  events,
  description,
  phoneNumberIds,
})

/** Pauses or resumes; false when it stands so already. One that paused itself and is paused by hand is probed no more. */
async function switchByHand(tx: TransactionSql, before: SubscriptionRow, status: Changes['status']) {
  const { id, disabledReason } = before
  if (status === undefined || (status === before.status && disabledReason === null)) return false
  await tx`
    update subscriptions set status = ${status}, disabled_reason = null, paused_at = null, updated_at = now()
    where id = ${id}
  `
  if (status === 'active') {
    await renewLane(tx, id)
    await tellOf(tx, subscriptionResumed, [{ id }], 'manual')
    return true
  }
  if (before.status === 'active') await tellOf(tx, subscriptionPaused, [{ id }], 'manual')
  return true
}
