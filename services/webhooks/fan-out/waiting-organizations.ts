import type { Fragment, Sql } from '@app/shared/database/database.ts'

/** Of more than that some are taken for free, until there is room. */
const mostOrganizations = 1_000

/** Organizations of which events wait, as `id`: by skipping from one to the next in the index. */
export const waitingOrganizations = (sql: Sql): Fragment => sql`
  with recursive o as (
    (select organization_id as id from event_backlog order by 1 limit 1)
    union all
    select n.organization_id from o cross join lateral (
      select organization_id from event_backlog where organization_id > o.id order by 1 limit 1
    ) n
  )
  select id from o limit ${mostOrganizations}
`
