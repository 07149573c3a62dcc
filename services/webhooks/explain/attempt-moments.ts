import { type Moment, momentAt } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'

export interface Attempt {
  deliveryId: string
  number: number
  startedAt: Date
  durationMs: number | null
  responseStatus: number | null
  errorCode: string | null
  errorMessage: string | null
}

/** The columns of an Attempt. */
export const attemptColumns = (sql: Sql) =>
  sql`delivery_id, number, started_at, duration_ms, response_status, error_code, error_message`

export const momentOf = (attempt: Attempt): Moment =>
  momentAt(
    attempt.startedAt,
    `attempt ${attempt.number} to deliver it: ${attempt.responseStatus ?? attempt.errorCode ?? 'no outcome'}`,
    {
      delivery_id: attempt.deliveryId,
      duration_ms: attempt.durationMs,
      ...(attempt.errorMessage !== null && { error_message: attempt.errorMessage }),
    },
  )
