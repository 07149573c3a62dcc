import type { Fragment, Sql } from '@app/shared/database/database.ts'
import { distinctOf } from '@app/shared/database/distinct-of.ts'

/** Of more than that some are taken for free, until there is room. */
const mostOrganizations = 1_000

/** Organizations of which events wait, as `id`. */
export const waitingOrganizations = (sql: Sql): Fragment => sql`
  ${distinctOf(sql, 'event_backlog', 'organization_id')} limit ${mostOrganizations}
`
