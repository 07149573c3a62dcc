import type { Sql } from '@app/shared/database/database.ts'

/** The month that a quota counts, in UTC. */
export const thisMonth = (sql: Sql) => sql`date_trunc('month', now() at time zone 'UTC')::date`

/**
 * How many more messages an organization may send this month: `rest` of a row `s` of senders, null without a quota. What
 * several instances accept in the same moment may go past it by as much.
 */
export const quotaRest = (sql: Sql) => sql`
  select (s.settings ->> 'messages_per_month')::bigint - coalesce((
    select count from monthly_sends where organization_id = s.organization_id and month = ${thisMonth(sql)} limit 1
  ), 0) as rest
`
