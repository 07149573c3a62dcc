import type { Fragment, TransactionSql } from '@app/shared/database/database.ts'

export const interruption = 'We stopped during this attempt; its outcome is unknown.'

/** Part of a statement: records the attempts of those deliveries in `over` that are still in a call, whose outcome nobody has told. */
export const noteInterrupted = (tx: TransactionSql, over: Fragment) => tx`
  insert into attempts (delivery_id, number, started_at, error_code, error_message)
  select id, attempts, begun_at, 'interrupted', ${interruption}
  from ${over} where begun_at is not null on conflict (delivery_id, number) do nothing
`
