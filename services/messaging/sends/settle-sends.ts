import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { Conditional } from '@app/shared/events/events.ts'
import type { Lane, Release } from '@app/shared/mailbox/lanes.ts'
import type { Done } from '@app/shared/mailbox/mailbox.ts'
import { takenUntil } from '@app/shared/mailbox/pace.ts'
import { z } from 'zod'
import { forgetUploads } from '../media/forget-uploads.ts'
import { noteRefusedTemplates, tellsOfTemplate } from '../templates/note-refused-templates.ts'
import { followUps } from './follow-ups.ts'
import { messageFailedEvent } from './message-failed.ts'
import { type FileAddresses, messageSentEvent } from './message-sent.ts'
import type { OpenSend } from './open-send.ts'
import { type Outcome, parkMs } from './outcome.ts'
import { writeOutcomes } from './write-outcomes.ts'

type DoneSend = Done<OpenSend, Outcome>

/** One message every 6 s to a recipient, 45 of them borrowed ahead (the platform's pair limit). */
const pairIntervalMs = 6_000
const pairBurstMs = 44 * pairIntervalMs

/**
 * Writes what became of open sends, and gives their lanes back with those that were `empty`: the message, its open row, the
 * attempt, the events. The message's rank only rises, so an outcome that a callback was faster than changes nothing, and is
 * not waited for; who raises it records the event. Answers whether a lane is due at once.
 */
export async function settleSends(
  sql: Sql,
  { done, empty }: { done: DoneSend[]; empty: Lane[] },
  media: FileAddresses,
): Promise<{ isDue: boolean }> {
  const { now, later } = oncePerSend(done)
  if (later.length === 0) return settleOnce(sql, { done, empty }, media)
  const first = await settleOnce(sql, { done: now, empty }, media)
  const then = await settleSends(sql, { done: later, empty: [] }, media)
  return { isDue: first.isDue || then.isDue }
}

/**
 * The answer of a call that took longer than its lease may come together with what the next holder made of the same send. One statement
 * would see the message as it was before both, so a send is in it only once; an answer `sent` goes first.
 */
function oncePerSend(done: DoneSend[]) {
  const ofSend = Map.groupBy(done, ({ item }) => item.seq)
  if (ofSend.size === done.length) return { now: done, later: [] }
  const inOrder = [...ofSend.values()].map((some) => some.toSorted((a, b) => Number(wasSent(b)) - Number(wasSent(a))))
  return { now: inOrder.flatMap((some) => some.slice(0, 1)), later: inOrder.flatMap((some) => some.slice(1)) }
}

const wasSent = ({ outcome }: DoneSend) => outcome?.kind === 'sent'

async function settleOnce(
  sql: Sql,
  { done, empty }: { done: DoneSend[]; empty: Lane[] },
  media: FileAddresses,
): Promise<{ isDue: boolean }> {
  const at = new Date()
  const told = done.flatMap(({ item, outcome }) => eventsOf(item, outcome, at, media))
  const lanes = [...done.map(givenBack), ...empty.map((lane) => ({ lane, waitMs: null }))]
  const slow = done.flatMap(slowNumberOf)
  const refused = done.flatMap(refusedTemplateOf)
  const files = done.flatMap(refusedFileOf)
  if (slow.length === 0 && refused.length === 0 && files.length === 0)
    return writeOutcomes(sql, done, { at, told, lanes })
  return sql.begin(async (tx) => {
    // Paces before lanes, and in order, as where sends are accepted: else the two could deadlock.
    await slowDown(tx, slow)
    const written = await writeOutcomes(tx, done, { at, told, lanes })
    await noteRefusedTemplates(tx, refused)
    await forgetUploads(tx, files)
    return written
  })
}

function givenBack({ lane, outcome }: DoneSend): Release {
  switch (outcome?.kind) {
    case 'sent': {
      const ahead = lane.pacedMs + pairIntervalMs
      return { lane, pacedMs: ahead, waitMs: ahead > pairBurstMs ? ahead - pairBurstMs : null }
    }
    case 'failed':
    case 'known':
      return { lane, waitMs: null }
    case 'again':
      return { lane, waitMs: outcome.letOut ? 0 : outcome.waitMs }
    case 'park':
      return { lane, waitMs: parkMs }
    case 'parked':
    case 'uploading':
      return { lane, waitMs: outcome.waitMs }
    case 'uploaded':
    case undefined:
      return { lane, waitMs: 0 }
  }
}

function eventsOf(item: OpenSend, outcome: Outcome | null, at: Date, media: FileAddresses): Conditional[] {
  if (outcome?.kind === 'sent')
    return [{ ...messageSentEvent(item, outcome.upstreamId, at, { media, waId: outcome.waId }), given: item.id }]
  if (outcome?.kind !== 'failed') return []
  const { providerCode, reportsAccount, askedAt = item.begunAt ?? at } = outcome.failure
  return [
    { ...messageFailedEvent(item, outcome.failure, at), given: item.id },
    ...followUps(item, { code: providerCode, at, askedAt, reportsAccount }),
  ]
}

const TemplateBlock = z.object({ name: z.string(), language: z.object({ code: z.string() }) })

function refusedTemplateOf({ item, outcome }: DoneSend) {
  const code = outcome?.kind === 'failed' ? outcome.failure.providerCode : null
  const { begunAt } = item
  if (code === null || begunAt === null || item.type !== 'template' || !tellsOfTemplate(code)) return []
  const { organizationId, businessAccountId } = item
  const { name, language } = TemplateBlock.parse(item.body)
  return [{ organizationId, businessAccountId, name, language: language.code, code, begunAt }]
}

/** How the platform refuses the id of a file that it does not have (any more): invalid parameter, or a file that it cannot take. */
const fileCodes: readonly (number | null)[] = [100, 131053]

function refusedFileOf({ item, outcome }: DoneSend) {
  const { organizationId, phoneNumberId, media, upstreamMediaId: upstreamId } = item
  if (outcome?.kind !== 'failed' || !fileCodes.includes(outcome.failure.providerCode)) return []
  return media && upstreamId !== null ? [{ organizationId, phoneNumberId, mediaId: media.id, upstreamId }] : []
}

function slowNumberOf({ item, outcome }: DoneSend) {
  const slowMs = (outcome && 'slowNumberMs' in outcome && outcome.slowNumberMs) || 0
  return slowMs === 0 ? [] : [{ grp: item.phoneNumberId, slow_ms: slowMs }]
}

/** Calls that were under way together are refused together: the number rests for that long, not for the sum. */
async function slowDown(tx: TransactionSql, slow: ReturnType<typeof slowNumberOf>) {
  if (slow.length === 0) return
  await tx`
    with rest as (
      select u.* from (
        select grp, max(slow_ms) as slow_ms
        from json_to_recordset(${JSON.stringify(slow)}::text::json) as u(grp text, slow_ms float8) group by 1 order by 1
      ) u cross join lateral (select from pace where grp = u.grp limit 1 for update) held
    )
    update pace p set tat = greatest(${takenUntil(tx)}, now() + slow_ms * interval '1 ms') from rest where p.grp = rest.grp
  `
}
