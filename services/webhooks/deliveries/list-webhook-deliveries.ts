import type { Handler, Input } from '@app/shared/contract.ts'
import { listWebhookDeliveries as contract } from '@app/shared/contracts/webhook-deliveries.ts'
import type { Sql } from '@app/shared/database.ts'
import { firstIdAt } from '@app/shared/ids.ts'
import { openPage } from '@app/shared/page.ts'
import type { App } from '../app.ts'
import { deliveryColumns, type DeliveryRow, lastAttempt, toDelivery } from './deliveries.ts'

type Query = Input<typeof contract>['query']

export const listWebhookDeliveries: Handler<App, typeof contract> = async (app, { query }, caller) => {
  const page = openPage(app.cursorKeys, contract, caller, query)
  const rows = await pageOf(app.sql, caller.organizationId, query, page.after, page.limit + 1)
  return page.page(rows, toDelivery, ({ id }) => id)
}

/**
 * The deliveries of the page come first, from the table that knows their status and by the index that fits the filters; what
 * belongs to them is looked up one by one.
 */
export function pageOf(sql: Sql, organizationId: string, query: Query, after: string | null, rows: number) {
  const deliveries = query.status === undefined || query.status === 'succeeded' ? byType : byStatus
  return sql<DeliveryRow[]>`
    select ${deliveryColumns(sql)}
    from (${deliveries(sql, organizationId, query, after, rows)}) d
      left join due_deliveries o on o.id = d.id left join dead_deliveries x on x.id = d.id ${lastAttempt(sql)}
    order by d.id desc
  `
}

/** The first id of the next millisecond: ids have no finer time. */
const firstIdAfter = (time: string) => firstIdAt('wbd', new Date(Date.parse(time) + 1))

/** Of each type as many, the newest of which are the page; with a type or an event id, of that alone. */
function byType(sql: Sql, organizationId: string, query: Query, after: string | null, rows: number) {
  const { status, subscription_id, event_type, event_id } = query
  const page = (type: ReturnType<Sql>) => sql`
    select d.* from deliveries d
    where d.organization_id = ${organizationId} ${type}
      ${subscription_id ? sql`and d.subscription_id = ${subscription_id}` : sql``}
      ${status ? sql`and not exists (select from due_deliveries where id = d.id)` : sql``}
      ${status ? sql`and not exists (select from dead_deliveries where id = d.id)` : sql``}
      ${within(sql, sql`d`, query, after)}
    order by d.id desc limit ${rows}
  `
  if (event_id)
    return page(sql`and d.event_id = ${event_id} ${event_type ? sql`and d.event_type = ${event_type}` : sql``}`)
  if (event_type) return page(sql`and d.event_type = ${event_type}`)
  return sql`
    select d.* from delivered_types t cross join lateral (${page(sql`and d.event_type = t.event_type`)}) d
    where t.organization_id = ${organizationId} order by d.id desc limit ${rows}
  `
}

/** Open and dead deliveries stand in tables of their own. */
function byStatus(sql: Sql, organizationId: string, query: Query, after: string | null, rows: number) {
  const { status, subscription_id, event_type, event_id } = query
  return sql`
    select d.* from ${status === 'dead' ? sql`dead_deliveries` : sql`due_deliveries`} k
    join lateral (select * from deliveries where id = k.id limit 1) d on true
    where k.organization_id = ${organizationId}
      ${status === 'dead' ? sql`` : sql`and k.tried = ${status === 'failed'}`}
      ${subscription_id ? sql`and k.subscription_id = ${subscription_id}` : sql``}
      ${event_type ? sql`and d.event_type = ${event_type}` : sql``}
      ${event_id ? sql`and d.event_id = ${event_id}` : sql``}
      ${within(sql, sql`k`, query, after)}
    order by k.id desc limit ${rows}
  `
}

/** Behind the page before, and between the moments: a range of ids. */
const within = (
  sql: Sql,
  table: ReturnType<Sql>,
  { created_after, created_before }: Query,
  after: string | null,
) => sql`
  ${after ? sql`and ${table}.id < ${after}` : sql``}
  ${created_after ? sql`and ${table}.id >= ${firstIdAfter(created_after)}` : sql``}
  ${created_before ? sql`and ${table}.id < ${firstIdAt('wbd', new Date(created_before))}` : sql``}
`
