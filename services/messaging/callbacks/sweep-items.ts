import type { Sql } from '@app/shared/database/database.ts'

/** Parts of callbacks that nobody's number took in the week for which callbacks are kept go with them; answers how many. */
export async function sweepCallbackItems(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from callback_items where seq in (
      select seq from callback_items where received_at < now() - interval '7 days' order by seq limit 5000
    )
  `
  return count
}
