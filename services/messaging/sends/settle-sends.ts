import type { TransactionSql } from '@app/shared/database.ts'
import { record, type Recorded } from '@app/shared/events.ts'
import type { Directive, Done } from '@app/shared/mailbox.ts'
import { z } from 'zod'
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
 * Writes what became of open sends: the message, its open row, the attempt, the events. The message's rank only rises, so
 * an outcome that a callback was faster than changes nothing; who raises it records the event.
 */
export async function settleSends(tx: TransactionSql, done: DoneSend[], media: FileAddresses): Promise<Directive[]> {
  const at = new Date()
  const { raised, lanesWithMore } = await writeOutcomes(tx, done, at)
  await Promise.all([
    record(
      tx,
      done.flatMap(({ item, outcome }) => eventsOf(item, outcome, { isRaised: raised.has(item.id), at, media })),
    ),
    slowNumbers(tx, done),
    noteRefusedTemplates(tx, done.flatMap(refusedTemplateOf)),
  ])
  return done.map(({ item, lane, outcome }) => directiveOf(item, lane.pacedMs, outcome, lanesWithMore))
}

function directiveOf(item: OpenSend, pacedMs: number, outcome: Outcome | null, more: Set<string>): Directive {
  const { laneId } = item
  const next = more.has(laneId) ? 0 : null
  switch (outcome?.kind) {
    case 'sent': {
      const ahead = pacedMs + pairIntervalMs
      return { laneId, pacedMs: ahead, waitMs: ahead > pairBurstMs ? ahead - pairBurstMs : next }
    }
    case 'failed':
      return { laneId, waitMs: next }
    case 'again':
      return { laneId, waitMs: outcome.letOut ? 0 : outcome.waitMs }
    case 'park':
      return { laneId, waitMs: parkMs }
    case 'parked':
    case 'uploading':
      return { laneId, waitMs: outcome.waitMs }
    case 'uploaded':
    case undefined:
      return { laneId, waitMs: 0 }
  }
}

interface Circumstances {
  isRaised: boolean
  at: Date
  media: FileAddresses
}

function eventsOf(item: OpenSend, outcome: Outcome | null, { isRaised, at, media }: Circumstances): Recorded[] {
  if (outcome?.kind === 'sent')
    return isRaised ? [messageSentEvent(item, outcome.upstreamId, at, { media, waId: outcome.waId })] : []
  if (outcome?.kind !== 'failed') return []
  const followed = followUps(item, outcome.failure.providerCode, at)
  return isRaised ? [messageFailedEvent(item, outcome.failure, at), ...followed] : followed
}

const TemplateBlock = z.object({ name: z.string(), language: z.object({ code: z.string() }) })

function refusedTemplateOf({ item, outcome }: DoneSend) {
  const code = outcome?.kind === 'failed' ? outcome.failure.providerCode : null
  if (code === null || item.type !== 'template' || !tellsOfTemplate(code)) return []
  const { organizationId, businessAccountId } = item
  const { name, language } = TemplateBlock.parse(item.body)
  return [{ organizationId, businessAccountId, name, language: language.code, code }]
}

async function slowNumbers(tx: TransactionSql, done: DoneSend[]) {
  for (const { item, outcome } of done) {
    const slowMs = (outcome && 'slowNumberMs' in outcome && outcome.slowNumberMs) || 0
    if (slowMs === 0) continue
    await tx`
      update pace set tat = greatest(tat, now()) + ${slowMs} * interval '1 ms' where grp = ${item.phoneNumberId}
    `
  }
}
