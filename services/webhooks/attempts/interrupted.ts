import type { Fragment, TransactionSql } from '@app/shared/database/database.ts'

export const interruption = 'We stopped during this attempt; its outcome is unknown.'

/** A part of a statement: records those of the deliveries in `over` that are found in a call of which nobody told what it came to. */
export const noteInterrupted = (tx: TransactionSql, over: Fragment) => tx`
  insert into attempts (delivery_id, number, started_at, error_code, error_message)
  select id, attempts, begun_at, 'interrupted', ${interruption}
  from ${over} where begun_at is not null on conflict (delivery_id, number) do nothing
`
