import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** An account that this instance has claimed. */
export interface DueAccount {
  organizationId: string
  id: string
  phoneNumberId: string | null
  businessAccountId: string
  sealedToken: string
  version: string
  pollFailures: number
  /** The claim's mark, in the database's own words. */
  heldUntil: string
}

/** When the account is due next, after an answer: at once if something was reported since the question, which the answer may not know. */
export const nextPollAt = (sql: Sql | TransactionSql, inMs: number) => sql`
  case when poll_at < poll_held_until then poll_at else now() + ${inMs} * interval '1 ms' end
`
