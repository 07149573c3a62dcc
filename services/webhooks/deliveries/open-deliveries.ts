import type { TransactionSql } from '@app/shared/database/database.ts'
import { pausedByHand } from '../attempts/paused.ts'
import { arriving } from '../attempts/wake-lane.ts'

/** A delivery that comes from no fan-out: a replay, or a test. */
interface NewDelivery {
  id: string
  organizationId: string
  subscriptionId: string
  eventType: string
  eventId: string
  /** Where the payload stands in `events`. */
  eventAt: Date
  replayedFrom?: string
  /** The job that replays it. */
  replayId?: string
}

/**
 * Records deliveries, and makes their lanes due as an arrival does; where a subscription was disabled or deleted a moment ago, for
 * them to be given up. Wake the mailbox after the commit.
 */
export const openDeliveries = (tx: TransactionSql, deliveries: NewDelivery[]) => tx`
  with d as materialized (
    select * from json_to_recordset(${JSON.stringify(deliveries)}::text::json) as d(id text, "organizationId" text,
      "subscriptionId" text, "eventType" text, "eventId" text, "eventAt" timestamptz, "replayedFrom" text, "replayId" text)
  ), types as (
    insert into delivered_types (organization_id, event_type)
    select distinct "organizationId", "eventType" from d order by 1, 2 on conflict do nothing
  ), recorded as (
    insert into deliveries (id, organization_id, subscription_id, event_type, event_id, event_at, replayed_from)
    select id, "organizationId", "subscriptionId", "eventType", "eventId", "eventAt", "replayedFrom" from d
  ), due as (
    insert into due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, due_at, replay_id)
    select id, "organizationId", "subscriptionId", "eventAt", "eventId", "eventType", now(), "replayId" from d order by id
  )
  insert into lanes as l (id, grp, due_at, arrivals)
  select d."subscriptionId", min(d."organizationId"),
    min(case when ${pausedByHand(tx)} is not true then now() end), 1
  from d left join lateral (select status, disabled_reason from subscriptions where id = d."subscriptionId" limit 1) s on true
  group by 1 order by 1
  ${arriving(tx)}
`
