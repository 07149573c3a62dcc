import { type Mailbox, startMailbox } from '@app/shared/mailbox/mailbox.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import type { Core } from '../app.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import { download } from './download.ts'
import { type CopyOutcome, settleCopies } from './settle-copies.ts'
import { discardFile, reserveFile } from './unclaimed-files.ts'
import { nextCopies, takeCopies, type WaitingCopy } from './waiting-copies.ts'

/** Copies at a time: in this process, and of one organization. */
const slots = 64
const slotsOfOne = 8

/** Waits before the next try; then every hour, for 7 days. */
const longestRetryMs = 900_000
const retryMs = [1_000, 2_000, 5_000, 15_000, 60_000, 300_000, longestRetryMs]
const retryEveryMs = 3_600_000
/**
 * How often the platform may say that it does not have a file; tries that fail otherwise are not counted. `gone`: it may have it a little
 * later. `unknown`: a token may have lost its business account by mistake, and get it back, so we ask for some 20 minutes.
 */
const mostRefusals = { gone: 3, unknown: 8 }

/** Copies what customers send from the platform to the store, and then tells of it. */
export const startCopier = (core: Core): Mailbox =>
  startMailbox<WaitingCopy, CopyOutcome>(core, {
    lanes: 'media_lanes',
    slots,
    perGroup: 1,
    capacity: () => slotsOfOne,
    refill: true,
    next: takeCopies,
    nextDue: nextCopies,
    work: async (item) => {
      const outcome = await copy(core, item)
      core.meters.copies.inc({ outcome: outcome.kind })
      return outcome
    },
    settle: (tx, done) => settleCopies(tx, core.media, done),
    settled: core.relay.wake,
    rescue: wakeSleepers,
  })

async function copy(core: Core, item: WaitingCopy): Promise<CopyOutcome> {
  const { accountId, sealedToken, attempts } = item
  if (item.isOld) return { kind: 'failed' }
  // A number that is detached may be connected again.
  if (accountId === null || sealedToken === null) return { kind: 'again', waitMs: retryEveryMs }
  const again = { kind: 'again', waitMs: waitAfter(attempts) } as const
  const startedAt = performance.now()
  try {
    const fileKey = await reserveFile(core.sql)
    const token = unsealToken(core.sealKeys, sealedToken, accountId)
    const result = await download(core, { ...item, token }, fileKey)
    note(core, item, result, startedAt)
    if (result.kind === 'copied') return { kind: 'copied', fileKey, file: result.file }
    await discardFile(core, fileKey)
    if (result.kind === 'failed') return again
    const refusals = item.refusals + 1
    if (refusals >= mostRefusals[result.kind]) return { kind: 'failed' }
    return { kind: 'again', waitMs: waitAfter(refusals), refused: true }
  } catch (err) {
    core.log.warn({ err, organization: item.organizationId, media: item.mediaId }, 'copy')
    return again
  }
}

const waitAfter = (tries: number) => retryMs[tries - 1] ?? retryEveryMs

function note({ log }: Core, item: WaitingCopy, result: { kind: string; details?: string }, startedAt: number) {
  const { organizationId, phoneNumberId, mediaId, attempts } = item
  const durationMs = Math.round(performance.now() - startedAt)
  const { kind, details } = result
  log[kind === 'copied' ? 'debug' : 'warn'](
    {
      organization: organizationId,
      number: phoneNumberId,
      media: mediaId,
      attempt: attempts,
      durationMs,
      outcome: kind,
      details,
    },
    'copy',
  )
}

/** Copies of one statement; when those are made, the next ones are due by themselves. */
const wokenAtOnce = 5_000

/** When a number is connected again, its copies that would wait up to an hour are due at once. Wake the copier after it. */
export async function wakeCopies({ sql, log }: Core, { organizationId, phoneNumberId }: OwnNumber): Promise<void> {
  try {
    await sql`
      with waiting as materialized (
        select seq from media_copies
        where lane = ${organizationId} and due_at > now() + ${longestRetryMs} * interval '1 ms'
          and organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
        order by due_at limit ${wokenAtOnce} for update skip locked
      ), woken as (
        update media_copies c set due_at = now() from waiting where c.seq = waiting.seq returning c.lane
      )
      insert into media_lanes as l (id, grp, due_at, arrivals) select distinct lane, lane, now(), 1 from woken
      on conflict (id) do update set due_at = least(l.due_at, excluded.due_at), arrivals = l.arrivals + 1
    `
  } catch (err) {
    log.warn({ err, number: phoneNumberId }, 'files of a number that is connected again wait for their time')
  }
}

/** Wakes lanes that sleep although they have a copy, or makes them. No other lane is locked: an arrival would wait for it. */
export async function wakeSleepers(sql: Core['sql']): Promise<number> {
  const { count } = await sql`
    insert into media_lanes as l (id, grp, due_at)
    select lane, min(organization_id), min(due_at) from media_copies c group by lane
    having (select true from media_lanes where id = c.lane and (due_at is not null or held_until >= now())) is null
    order by lane
    on conflict (id) do update set due_at = excluded.due_at where l.due_at is null and l.held_until < now()
  `
  await sql`
    delete from media_lanes l where due_at is null and held_until < now()
      and not exists (select from media_copies where lane = l.id)
  `
  return count
}
