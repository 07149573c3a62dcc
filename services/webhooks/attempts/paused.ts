import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** Of `subscriptions s`: it paused itself; it is probed, and heals with the first success. */
export const pausedItself = (sql: Sql | TransactionSql) =>
  sql`(s.status = 'paused' and s.disabled_reason = 'consecutive_failures')`

/** Of `subscriptions s`: its owner paused it; nothing is tried until its owner resumes it. */
export const pausedByHand = (sql: Sql | TransactionSql) => sql`(s.status = 'paused' and s.disabled_reason is null)`
