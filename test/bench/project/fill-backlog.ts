import type { TransactionSql } from 'postgres'
import { numberRows } from './number-rows.ts'
import type { Project } from './project.ts'

const type = 'message.revoked'
/** All within the last hour: the partition of today is there. */
const days = 1 / 24

/** Writes events that each of the subscriptions is to get, due now, straight into the tables, and makes their lanes due; answers how many deliveries that are. */
export async function fillBacklog(project: Project, subscriptionIds: string[], count: number): Promise<number> {
  const { organization_id: organizationId } = project.stack()
  const events = Math.ceil(count / subscriptionIds.length)
  await project.sql().begin(async (tx) => {
    await numberRows(tx, events, days)
    await tx`update filled set at = date_trunc('milliseconds', at)`
    await fillEvents(tx, organizationId)
    await fillDue(tx, organizationId, subscriptionIds)
  })
  for (const table of ['events', 'deliveries', 'due_deliveries'])
    await project.sql().unsafe(`analyze webhooks.${table}`)
  // Now, and not when a page must make room for one that is read: that waits for the disk, for seconds.
  await project.sql()`checkpoint`
  return events * subscriptionIds.length
}

async function fillEvents(tx: TransactionSql, organizationId: string) {
  await tx`
    insert into webhooks.events (at, organization_id, event_id, type, source, payload)
    select at, ${organizationId}, 'backlog:' || characters, ${type}, 'svc',
      json_build_object('id', 'backlog:' || characters, 'type', ${type}::text, 'data', repeat('x', 700))::text
    from filled
  `
  await tx`
    insert into webhooks.delivered_types (organization_id, event_type) values (${organizationId}, ${type})
    on conflict do nothing
  `
}

/** The id's time is the event's; its last characters tell the subscription, too. */
async function fillDue(tx: TransactionSql, organizationId: string, subscriptionIds: string[]) {
  await tx`
    create temporary table due on commit drop as
    select 'wbd_' || left(characters, 10) || lpad(place::text, 4, '0') || right(characters, 12) as id,
      subscription_id, at, 'backlog:' || characters as event_id
    from filled cross join unnest(${subscriptionIds}::text[]) with ordinality s(subscription_id, place) order by at
  `
  await tx`
    insert into webhooks.deliveries (id, organization_id, subscription_id, event_type, event_id)
    select id, ${organizationId}, subscription_id, ${type}, event_id from due
  `
  await tx`
    insert into webhooks.due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, due_at)
    select id, ${organizationId}, subscription_id, at, event_id, ${type}, now() from due
  `
  await tx`
    insert into webhooks.lanes as l (id, grp, due_at, arrivals)
    select id, ${organizationId}, now(), 1 from unnest(${subscriptionIds}::text[]) id order by id
    on conflict (id) do update set due_at = now(), arrivals = l.arrivals + 1
  `
}

/** How many of them still wait. */
export async function backlogLeft(project: Project, subscriptionIds: string[]): Promise<number> {
  const [row] = await project.sql()<{ count: number }[]>`
    select count(*)::int as count from webhooks.due_deliveries where subscription_id = any(${subscriptionIds})
  `
  return row?.count ?? 0
}

/** Takes away what is left of them. */
export async function forgetBacklog(project: Project, subscriptionIds: string[]): Promise<void> {
  await project.sql()`delete from webhooks.due_deliveries where subscription_id = any(${subscriptionIds})`
}
