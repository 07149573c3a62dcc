import { lockTimeoutMs, type Fragment, type Sql } from '@app/shared/database/database.ts'
import { timeOfFloor } from '@app/shared/mailbox/due-floor.ts'
import { type Lane, laneColumns } from '@app/shared/mailbox/lanes.ts'
import type { Holder, Inserted, Sender } from './insert-sends.ts'

/** What the statements that accept sends tell of each. */
export interface InsertedRow extends Sender, Lane, Pick<Inserted, 'known' | 'refusal' | 'accepted' | 'due'> {
  seq: string | null
  begunAt: Date | null
}

/** The columns of an InsertedRow: from `g`, the sender and what stands against the send; `s`, the open send; and `l`, its lane. */
export const insertedColumns = (sql: Sql): Fragment => sql`
  g.account_id is not null as known, g.refusal, s.seq is not null as accepted, s.seq, s.begun_at,
  coalesce(l.held_until < now(), false) as due,
  ${laneColumns(sql, 'l')},
  g.account_id, g.business_account_id, g.phone_number, case when s.begun_at is not null then g.sealed_token end as sealed_token,
  g.settings ->> 'unknown_outcome' = 'resend' as resend_unknown, g.settings ->> 'ordering' = 'relaxed' as relaxed
`

/**
 * How long a send waits for a request of the same key: the other sends of its statement, and those of the next ones, wait with
 * it. For a lane it may be longer.
 */
const keyTimeoutMs = 200

const waitingForLocks = (sql: Sql, ms: number) => sql`set_config('lock_timeout', ${String(ms)}::text, true)`

/** From here on the statement waits for a key. */
export const waitingForKeys = (sql: Sql): Fragment => waitingForLocks(sql, keyTimeoutMs)

/** From here on it waits for a lane. */
export const waitingForLanes = (sql: Sql): Fragment => waitingForLocks(sql, lockTimeoutMs)

/** A used key of `idempotency.keys`, as `k`, may be used anew after its 24 hours. */
export const onKnownKey = (sql: Sql): Fragment => sql`
  on conflict (organization_id, key) do update set fingerprint = excluded.fingerprint, status = excluded.status,
    answer = excluded.answer, sealed = false, held_until = null, created_at = now()
    where k.created_at < now() - interval '24 hours'
`

/** Sends are added to the count that a month of `monthly_sends`, as `c`, has already. */
export const onKnownMonth = (sql: Sql): Fragment => sql`
  on conflict (organization_id, month) do update set count = c.count + excluded.count
`

/** Of a lane: it is due. Whether any of a number is, is asked with each send. */
export const isDue = (sql: Sql, { dueFrom }: Holder): Fragment =>
  sql`due_at >= ${timeOfFloor(sql, dueFrom)} and due_at <= now()`

/**
 * For a send whose lane of `send_lanes`, as `l`, exists already: if the lane sleeps, it is claimed as a new one would be. Its group is
 * set, too: the number may have been another organization's meanwhile.
 */
export function onKnownLane(sql: Sql, { holder }: Holder): Fragment {
  const isAsleep = sql`l.due_at is null and l.held_until < now()`
  return sql`
    on conflict (id) do update set due_at = coalesce(l.due_at, excluded.due_at), arrivals = l.arrivals + 1, grp = excluded.grp,
      held_until = case when ${isAsleep} then excluded.held_until else l.held_until end,
      holder = case when ${isAsleep} then excluded.holder else l.holder end
    returning id, grp, arrivals, held_until, failures, paced_until, holder is not distinct from ${holder}::bigint as mine
  `
}
