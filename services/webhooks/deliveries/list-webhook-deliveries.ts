import type { Handler, Input } from '@app/shared/contract.ts'
import { listWebhookDeliveries as contract } from '@app/shared/contracts/webhooks.ts'
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
  const { status, subscription_id, event_type, event_id, created_after, created_before } = query
  const { from, k, and } = source(sql, status)
  return sql<DeliveryRow[]>`
    select ${deliveryColumns(sql)}
    from (
      select d.* from ${from}
      where ${k}.organization_id = ${organizationId} ${and}
        ${subscription_id ? sql`and ${k}.subscription_id = ${subscription_id}` : sql``}
        ${event_type ? sql`and d.event_type = ${event_type}` : sql``}
        ${event_id ? sql`and d.event_id = ${event_id}` : sql``}
        ${after ? sql`and ${k}.id < ${after}` : sql``}
        ${created_after ? sql`and ${k}.id >= ${firstIdAfter(created_after)}` : sql``}
        ${created_before ? sql`and ${k}.id < ${firstIdAt('wbd', new Date(created_before))}` : sql``}
      order by ${k}.id desc limit ${rows}
    ) d left join due_deliveries o on o.id = d.id left join dead_deliveries x on x.id = d.id ${lastAttempt(sql)}
    order by d.id desc
  `
}

/** The first id of the next millisecond: ids have no finer time. */
const firstIdAfter = (time: string) => firstIdAt('wbd', new Date(Date.parse(time) + 1))

/** Where deliveries of a status are found, and the name of the table that gives their order. */
function source(sql: Sql, status: Query['status']) {
  const itself = sql`join lateral (select * from deliveries where id = k.id limit 1) d on true`
  switch (status) {
    case undefined:
      return { from: sql`deliveries d`, k: sql`d`, and: sql`` }
    case 'succeeded':
      return {
        from: sql`deliveries d`,
        k: sql`d`,
        and: sql`
          and not exists (select from due_deliveries where id = d.id)
          and not exists (select from dead_deliveries where id = d.id)
        `,
      }
    case 'dead':
      return { from: sql`dead_deliveries k ${itself}`, k: sql`k`, and: sql`` }
    case 'pending':
      return { from: sql`due_deliveries k ${itself}`, k: sql`k`, and: sql`and not k.tried` }
    case 'failed':
      return { from: sql`due_deliveries k ${itself}`, k: sql`k`, and: sql`and k.tried` }
  }
}
