import type { Handler, Input } from '@app/shared/api/contract.ts'
import { listWebhookDeliveries as contract } from '@app/shared/contracts/webhook-deliveries.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import { openPage } from '@app/shared/api/page.ts'
import { limitTo } from '@app/shared/database/limit-to.ts'
import type { App } from '../app.ts'
import { deliveryColumns, type DeliveryRow, lastAttempt, openOrDead, toDelivery } from './deliveries.ts'

type Query = Input<typeof contract>['query']

/**
 * Lists that may read much in vain wait for each other, those of one organization: else they could take all connections, and other
 * organizations' events would wait for one.
 */
export const listWebhookDeliveries: Handler<App, typeof contract> = (app, input, caller) =>
  mayReadMany(input.query) ? app.listInTurn(caller, () => list(app, input, caller)) : list(app, input, caller)

function mayReadMany({ status, subscription_id, event_type }: Query) {
  switch (status) {
    // Whatever is neither open nor dead. Measured where most is: half a second for 50,000.
    case 'succeeded':
      return true
    // Open ones stand in an index by organization, and those that have failed by type: an index more would cost each delivery.
    case 'pending':
      return subscription_id !== undefined || event_type !== undefined
    case 'failed':
      return subscription_id !== undefined
    // Of a subscription, or of a type, they stand in an index each; of both, those of one are read.
    case 'dead':
      return subscription_id !== undefined && event_type !== undefined
    case undefined:
      return false
  }
}

const list: Handler<App, typeof contract> = async (app, { query }, caller) => {
  const page = openPage(app.cursorKeys, contract, caller, query)
  const rows = await pageOf(app.sql, caller.organizationId, query, page.after, page.mostRows)
  return page.page(rows, toDelivery, ({ id }) => id)
}

/**
 * The deliveries of the page come first, from the table that knows their status and by the index that fits the filters; what
 * belongs to them is looked up one by one.
 */
export function pageOf(sql: Sql, organizationId: string, query: Query, after: string | null, rows: number) {
  const asked: Asked = { organizationId, query, rows, ...spanOf(query, after) }
  return sql<DeliveryRow[]>`
    select ${deliveryColumns(sql)}
    from (${deliveriesOf(sql, asked)}) d ${openOrDead(sql)} ${lastAttempt(sql)}
    order by d.id desc
  `
}

interface Asked {
  organizationId: string
  query: Query
  rows: number
  /** The ids from which and below which. */
  from: string
  below: string
}

function deliveriesOf(sql: Sql, asked: Asked) {
  const { status, event_id } = asked.query
  if (event_id !== undefined) return ofEvent(sql, asked, event_id)
  return status === undefined || status === 'succeeded' ? byType(sql, asked) : byStatus(sql, asked)
}

/** One sorts before all ids, the other behind them. */
const [firstId, lastId] = ['', '~']

/** Between the moments, and behind the page before. */
function spanOf({ created_after, created_before }: Query, after: string | null) {
  const below = [created_before ? firstIdAt('wbd', new Date(created_before)) : lastId, after ?? lastId]
  return {
    from: created_after ? firstIdAfter(created_after) : firstId,
    below: below.reduce((first, id) => (id < first ? id : first)),
  }
}

/** The first id of the next millisecond: ids have no finer time. */
const firstIdAfter = (time: string) => firstIdAt('wbd', new Date(Date.parse(time) + 1))

/** An event has as many as it has subscriptions. */
function ofEvent(sql: Sql, asked: Asked, eventId: string) {
  const { organizationId, query, rows } = asked
  const { subscription_id, event_type } = query
  return sql`
    select d.* from deliveries d
    where d.organization_id = ${unseen(sql, organizationId)} and d.event_id = ${unseen(sql, eventId)}
      ${event_type ? sql`and d.event_type = ${unseen(sql, event_type)}` : sql``}
      ${subscription_id ? sql`and d.subscription_id = ${unseen(sql, subscription_id)}` : sql``}
      ${hasStatus(sql, query)} ${within(sql, sql`d.id`, asked)}
    order by d.id desc ${limitTo(sql, rows)}
  `
}

function hasStatus(sql: Sql, { status }: Query) {
  switch (status) {
    case undefined:
      return sql``
    case 'succeeded':
      // Row by row: of a `not exists` the planner makes a join, and may read both tables whole for it. Not as `is null` either, of which it
      // expects one in 200: it would read all there are, and sort the few.
      return sql`and not coalesce((select true from due_deliveries where id = d.id), false)
        and not coalesce((select true from dead_deliveries where id = d.id), false)`
    case 'dead':
      return sql`and exists (select from dead_deliveries where id = d.id)`
    case 'pending':
    case 'failed':
      return sql`and exists (select from due_deliveries where id = d.id and tried = ${status === 'failed'})`
  }
}

/**
 * The newest of each type, or of the one that is asked for, as many as a page has; the newest of all these are the page. Owner and type are
 * compared as a range, and stand in the `order by`. Compared with `=`, the order would be that of a partition's primary key, and Postgres
 * might go through that instead, past all other types; and of one of thousands of owners it expects so few that it reads all that this one
 * has, and sorts them. The type comes from a table, since the planner takes the range of a type that it knows for empty.
 *
 * The range has one end. At a lower end Postgres stops when the first of the columns is another, and would go on through all types of the
 * owner that sort before a rare one. So what is beyond the type counts as found, whatever its status, ends the look, and is left out afterwards.
 */
function byType(sql: Sql, asked: Asked) {
  const { organizationId, query, rows, from, below } = asked
  const { subscription_id, event_type } = query
  const column = subscription_id ? sql`d.subscription_id` : sql`d.organization_id`
  const owner = unseen(sql, subscription_id ?? organizationId)
  const isWithin = sql`${column} = ${owner} and d.event_type = t.event_type and d.id >= ${from}`
  return sql`
    select d.* from delivered_types t cross join lateral (
      select d.* from deliveries d
      where (${column}, d.event_type, d.id) < (${owner}, t.event_type, ${below})
        and (not (${isWithin}) or (true
          ${subscription_id ? sql`and array[d.organization_id] = array[${unseen(sql, organizationId)}]` : sql``}
          ${hasStatus(sql, query)}))
      order by ${column} desc, d.event_type desc, d.id desc ${limitTo(sql, rows)}
    ) d
    where t.organization_id = ${unseen(sql, organizationId)} ${event_type ? sql`and t.event_type = ${unseen(sql, event_type)}` : sql``}
      and ${isWithin}
    order by d.id desc ${limitTo(sql, rows)}
  `
}

/**
 * Open and dead deliveries stand in tables of their own, with their types: no other deliveries are looked at. Open ones have no index by
 * status and subscription: the planner decides whether the subscription's own or all failed ones are fewer.
 */
function byStatus(sql: Sql, asked: Asked) {
  const { organizationId, query, rows } = asked
  const { status, subscription_id, event_type } = query
  const isDead = status === 'dead'
  // Said so, and not by a parameter: an index holds those that have failed alone.
  const isTried = status === 'failed' ? sql`and k.tried` : sql`and not k.tried`
  return sql`
    select d.* from ${isDead ? sql`dead_deliveries` : sql`due_deliveries`} k
    join lateral (select * from deliveries where id = k.id limit 1) d on true
    where k.organization_id = ${unseen(sql, organizationId)} ${isDead ? sql`` : isTried}
      ${subscription_id ? sql`and k.subscription_id = ${subscription_id}` : sql``}
      ${event_type ? sql`and k.event_type = ${unseen(sql, event_type)}` : sql``}
      ${within(sql, sql`k.id collate "POSIX"`, asked)}
    order by k.id collate "POSIX" desc ${limitTo(sql, rows)}
  `
}

/**
 * A value that the planner does not see, so that it plans for any value. Seeing a rare one, it would take a plan of its own for cheaper at
 * each call, and plan anew each time, though the plan is the same.
 */
const unseen = (sql: Sql, text: string) => sql`(select ${text}::text)`

/** A range of ids: partitions out of it are not looked at. */
const within = (sql: Sql, id: ReturnType<Sql>, { from, below }: Pick<Asked, 'from' | 'below'>) => sql`
  ${from === firstId ? sql`` : sql`and ${id} >= ${from}`}
  ${below === lastId ? sql`` : sql`and ${id} < ${below}`}
`
