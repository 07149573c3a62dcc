import type { TransactionSql } from '@app/shared/database/database.ts'

/**
 * 15 s of the call, and time to record it. A delivery that was begun earlier was begun by a process that died. A part of the text, as
 * all that is the same each time: a plan for whatever is given would be taken for dearer than one for this, and none be kept.
 */
const lease = (tx: TransactionSql) => tx`interval '25 seconds'`

/** Of a row of due_deliveries: nobody is at it. */
export const notInCall = (tx: TransactionSql, row = tx``) =>
  tx`(${row}begun_at is null or ${row}begun_at < now() - ${lease(tx)})`

/** Of a row of due_deliveries: when it is due, or will be found to be nobody's. */
export const freeAt = (tx: TransactionSql) => tx`greatest(due_at, begun_at + ${lease(tx)})`
