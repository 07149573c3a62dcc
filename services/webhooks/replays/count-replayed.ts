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

/** Their counts change with the outcomes; in one order, so that two transactions do not wait for each other. */
export async function lockReplays(tx: TransactionSql, replays: (string | null)[]): Promise<void> {
  const ids = replays.flatMap((id) => id ?? [])
  if (ids.length === 0) return
  await tx`select id from replays where id = any(${ids}) order by id for no key update`
}
