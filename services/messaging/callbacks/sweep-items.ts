import type { Sql } from '@app/shared/database/database.ts'

/** Parts of callbacks that nobody's number took go with the callbacks, which are kept for a week and their partition's day; answers how many. */
export async function sweepCallbackItems(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from callback_items where seq in (
      select seq from callback_items where received_at < now() - interval '8 days' order by seq limit 5000
    )
  `
  return count
}
