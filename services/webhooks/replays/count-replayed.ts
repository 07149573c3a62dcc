import type { TransactionSql } from '@app/shared/database/database.ts'

/** A part of a statement: jobs count what became of their deliveries, told by its part `over (replay_id, verdict)`. */
export const countReplayed = (tx: TransactionSql) => tx`
  counted as (
    update replays r set succeeded = r.succeeded + n.succeeded, failed = r.failed + n.failed
    from (
      select replay_id, (count(*) filter (where verdict = 'succeeded'))::int as succeeded,
        (count(*) filter (where verdict = 'dead'))::int as failed
      from over where replay_id is not null group by 1
    ) n where r.id = n.replay_id
  )
`
