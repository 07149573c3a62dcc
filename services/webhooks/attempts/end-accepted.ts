import type { TransactionSql } from '@app/shared/database/database.ts'
import { countReplayed } from '../replays/count-replayed.ts'
import { noteInterrupted } from './interrupted.ts'
import type { Attempt } from './open-attempts.ts'

/**
 * Ends deliveries that an endpoint accepted in an attempt that had been taken for broken off: meanwhile they are being tried again, or were
 * given up. One that was given up and replayed stays as it is. The replays and lines of all of them are locked already.
 */
export async function endAccepted(tx: TransactionSql, attempts: Attempt[]): Promise<void> {
  if (attempts.length === 0) return
  // First, so that whoever is just giving one up is waited for.
  await tx`
    with over as (
      delete from due_deliveries where id = any(${attempts.map(({ id }) => id)})
      returning id, replay_id, attempts, begun_at, 'succeeded' as verdict
    ), ${countReplayed(tx)}
    ${noteInterrupted(tx, tx`over`)}
  `
  const rows = attempts.map(({ id, organizationId, eventId, replayId }) => ({
    id,
    organization_id: organizationId,
    event_id: eventId,
    replay_id: replayId,
  }))
  await tx`
    with accepted as (
      delete from dead_deliveries x
      using json_to_recordset(${JSON.stringify(rows)}::text::json) as a(id text, organization_id text, event_id text, replay_id text)
      where x.id = a.id and not exists (
        select from deliveries where organization_id = a.organization_id and event_id = a.event_id and replayed_from = a.id
      ) returning a.replay_id
    )
    update replays r set succeeded = r.succeeded + n.count, failed = r.failed - n.count
    from (select replay_id, count(*)::int from accepted group by 1) n where r.id = n.replay_id
  `
}
