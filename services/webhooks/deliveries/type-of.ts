import type { TransactionSql } from '@app/shared/database/database.ts'

/** Of the row of a statement's part `over`: the type of its delivery. */
export const typeOf = (tx: TransactionSql) => tx`(select event_type from deliveries where id = over.id limit 1)`
