import type { Sql, TransactionSql } from '@app/shared/database/database.ts'

/** 15 s of the call, and time to record it. A delivery that was begun earlier was begun by a process that died. */
const leaseSeconds = 25

/** Of a row of due_deliveries: nobody is at it. */
export const notInCall = (tx: Sql | TransactionSql, row = tx``) =>
  tx`(${row}begun_at is null or ${row}begun_at < now() - ${leaseSeconds} * interval '1 second')`

/** Of a row of due_deliveries: when it is due, or when its call counts as lost. */
export const freeAt = (tx: TransactionSql) => tx`greatest(due_at, begun_at + ${leaseSeconds} * interval '1 second')`
