import type { Sql, TransactionSql } from './database.ts'

/** A search is planned for what it looks for, by the pieces that are rarest, so no plan is kept for all of them. */
export const plannedAnew = <T>(sql: Sql, read: (tx: TransactionSql) => Promise<T>) =>
  sql.begin(async (tx) => {
    await tx`set local plan_cache_mode = force_custom_plan`
    return read(tx)
  })
