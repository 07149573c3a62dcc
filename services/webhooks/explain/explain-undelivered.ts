import { type Moment, standing, type ToldEvent } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { fanOutConsumers } from '../fan-out/comes-in-order.ts'

interface Row {
  eventId: string
  type: string
  /** Null: the organization has none. */
  subscriptionId: string | null
  reason: string
}

/** Why subscriptions have no delivery of events that were told. */
export async function explainUndelivered(sql: Sql, organizationId: string, told: ToldEvent[]): Promise<Moment[]> {
  const rows = await sql<Row[]>`
    select e.id as event_id, e.type, s.id as subscription_id,
      case when s.id is null then 'the organization has no webhook subscription'
        when s.id = e."except" then 'the event tells of it, and goes to the others alone'
        when e.type <> all(s.events) then 'it does not select the type'
        when s.phone_number_ids <> '{}' and e.phone_number_id <> all(s.phone_number_ids) then 'it does not take the number'
        when s.status = 'disabled' then 'it is disabled'
        when exists (
          select from dead_events f where f.dead and f.consumer = any(${fanOutConsumers}::text[])
            and f.event_id = ${organizationId} || ':' || e.id
        ) then 'the fan-out of the event failed eight times, and was given up'
        else 'it did not select the event when that came, or the event is on its way, or the delivery is no longer kept (90 days)'
      end as reason
    from json_to_recordset(${JSON.stringify(told)}::text::json) as e(id text, type text, phone_number_id text, "except" text)
    left join subscriptions s on s.organization_id = ${organizationId}
    where not exists (
      select from event_backlog where organization_id = ${organizationId} and event_id = e.id
    ) and not exists (
      select from deliveries d where d.organization_id = ${organizationId} and d.event_id = e.id and d.subscription_id = s.id
    )
    order by e.id, s.id
  `
  return [...Map.groupBy(rows, ({ eventId }) => eventId)].flatMap(([eventId, [first, ...others]]) => {
    if (!first) return []
    const reasons = [first, ...others].map(({ subscriptionId, reason }) => [subscriptionId ?? organizationId, reason])
    const details = { event_id: eventId, not_delivered_to: Object.fromEntries(reasons) as Record<string, string> }
    return [standing(`${first.type} has no delivery to ${whom(first, others.length)}`, details)]
  })
}

const whom = ({ subscriptionId, reason }: Row, others: number) =>
  subscriptionId === null
    ? `anybody: ${reason}`
    : others === 0
      ? `${subscriptionId}: ${reason}`
      : `${others + 1} subscriptions`
