import type { Sql } from '@app/shared/database/database.ts'

/** Of a number at which very many conversations wait, it says how many there are at least. */
export const countedLanes = 10_000

/** Open sends of the number of a row `s` of senders, as far as they are counted, and the first of them that was accepted. */
export const waitingSends = (sql: Sql) => sql`
  select count(*)::int as waiting, min(h.message_id) as oldest from (
    select id from send_lanes
    where due_at is not null and grp in (s.phone_number_id, s.organization_id || ':' || s.phone_number_id)
    limit ${countedLanes}
  ) l
  join sends h on h.lane = l.id and h.organization_id = s.organization_id
`
