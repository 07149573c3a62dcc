import type { TransactionSql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'
import type { Want } from '@app/shared/mailbox/mailbox.ts'

/** A copy whose work has begun. */
export interface WaitingCopy {
  laneId: string
  seq: string
  /** This one included. */
  attempts: number
  /** How often the platform has said before that it does not have it. */
  refusals: number
  organizationId: string
  phoneNumberId: string
  mediaId: string
  upstreamMediaId: string
  sha256: string | null
  /** Older than the platform keeps a file. */
  isOld: boolean
  /** Of the number's account; null: the number is not the organization's any more. */
  accountId: string | null
  sealedToken: string | null
}

/** The platform keeps what a customer has sent for 7 days. */
const triedDays = 7

/**
 * The longest due copies of each lane, those first that somebody waits to be told of: an import may bring thousands of
 * others. One that was begun is begun again only by a holder that is not its own.
 */
export async function takeCopies(tx: TransactionSql, wants: Want[]): Promise<WaitingCopy[]> {
  const given = wants.map(({ lane, free, fresh }) => ({ lane: lane.id, free, fresh }))
  return tx<WaitingCopy[]>`
    with picked as (
      select c.seq from json_to_recordset(${JSON.stringify(given)}::text::json) as g(lane text, free int, fresh bool)
      cross join lateral (
        (select seq from media_copies
          where lane = g.lane and event is not null and due_at <= now() and (begun_at is null or g.fresh)
          order by event_due_at limit g.free)
        union all
        (select seq from media_copies
          where lane = g.lane and event is null and due_at <= now() and (begun_at is null or g.fresh)
          order by due_at limit g.free)
        limit g.free
      ) c
    ), free as materialized (
      -- What somebody has in hand is passed over: to wait for it with the lanes locked would stop whoever adds to them.
      select seq from media_copies where seq = any(array(select seq from picked)) for update skip locked
    ), begun as (
      update media_copies c set attempts = c.attempts + 1, begun_at = now() from free where c.seq = free.seq
      returning c.lane as lane_id, c.seq, c.attempts, c.refusals, c.organization_id, c.phone_number_id, c.media_id, c.upstream_media_id,
        c.sha256, c.created_at < now() - ${triedDays} * interval '1 day' as is_old
    )
    select b.*, s.account_id, s.sealed_token from begun b
    left join senders s on s.organization_id = b.organization_id and s.phone_number_id = b.phone_number_id and s.attached
    order by b.seq
  `
}

/** When the next copies of lanes are due in which nothing is in work: a copy that was begun there was begun by a holder that died. */
export const nextCopies = (tx: TransactionSql, laneIds: string[]) => tx<{ laneId: string; waitMs: number }[]>`
  select l.id as lane_id, greatest(0, extract(epoch from c.at - now()) * 1000)::float8 as wait_ms
  from ${each(tx, laneIds)} l(id)
  cross join lateral (
    select due_at as at from media_copies where lane = l.id order by due_at limit 1
  ) c
`
