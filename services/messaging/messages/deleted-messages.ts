import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** Callbacks are kept, and worked through again, for a week and their partition's day; the platform itself tries for a week. */
const keptDays = 9
/** A message of before came, at the latest, so long ago that its callback is gone: the platform tells it for a week. */
const oldestDays = 7 + keptDays

/**
 * Part of a statement: of the messages in `gone` that a callback brought, what must not be made of it anew. It would be told a
 * second time, and taken off the unread ones again.
 */
export const notingDeleted = (sql: Sql | TransactionSql) => sql`
  insert into deleted_messages (organization_id, upstream_id)
  select organization_id, upstream_id from gone
  where upstream_id is not null and (direction = 'inbound' or source = 'app')
    and created_at > now() - ${oldestDays} * interval '1 day'
  order by 1, 2 on conflict do nothing
`

/** Whether a message `m` was here, and was deleted for its age. A look-up: an `exists` may be planned as one reading of them all. */
export const wasDeleted = (sql: Sql | TransactionSql) => sql`(
  select true from deleted_messages where organization_id = m.organization_id and upstream_id = m.upstream_id limit 1
) is true`

/** Forgets ids whose callbacks are gone, 5,000 at a time; answers how many. */
export async function sweepDeletedMessages(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from deleted_messages where (organization_id, upstream_id) in (
      select organization_id, upstream_id from deleted_messages
      where deleted_at < now() - ${keptDays} * interval '1 day' limit 5000
    )
  `
  return count
}
