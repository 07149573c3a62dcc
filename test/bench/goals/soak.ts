import type { Bench } from '../bench.ts'
import { memoryMibOf } from '../processes.ts'
import { backlogOf, drain } from '../project/backlog.ts'
import type { Project } from '../project/project.ts'
import { sendPaced } from '../project/send-paced.ts'
import { eventsOfOne, takeAll, type WholeLives, withWholeLives } from '../project/whole-lives.ts'
import { type Sample, slopeOf } from '../slope.ts'
import type { Goal } from './goal.ts'

/** The sender and the receiver begin afresh so often, so that they do not remember a soak of hours. */
const sliceSeconds = 20
const lookEveryMs = 2_000
/** The first third fills caches and heaps. */
const warmUpShare = 1 / 3
/** A slope over less says nothing of a leak. */
const tellingMinutes = 10
/** More than this in an hour, of what it holds, is growth. */
const growthAnHour = 0.1

/**
 * The whole life of messages (sent, three statuses, each told to a subscriber) at 70 % of what the machine carries, for
 * long: does memory grow, does anything pile up?
 */
export const measureSoak: Goal = (bench) =>
  withWholeLives(bench, async (lives) => {
    const soaked = await soak(bench, lives)
    return { figures: [], notes: [rateNote(lives), ...notesOf(soaked, bench.options.minutes)], details: soaked }
  })

interface Soaked {
  sends: number
  deliveries: number
  /** Given up, since more waited for the one subscription than it may have. */
  expired: number
  /** MiB resident of each service, by hours. */
  rss: Record<string, Sample[]>
  backlogAtEnd: Record<string, number>
  drainedMs: number
}

async function soak(
  { options, fixture, say }: Bench,
  { project, sender, receiver, rate }: WholeLives,
): Promise<Soaked> {
  const { recipients } = await fixture()
  const startedAt = performance.now()
  const rss: Record<string, Sample[]> = {}
  const look = () => {
    const at = (performance.now() - startedAt) / 3_600_000
    for (const [name, memory] of Object.entries(memoryMibOf(project.roots().services)))
      (rss[name] ??= []).push({ at, value: memory.rss })
  }
  const looking = setInterval(look, lookEveryMs)
  let [sends, deliveries] = [0, 0]
  try {
    for (let left = options.minutes * 60; left > 0.5; left -= sliceSeconds) {
      const seconds = Math.min(left, sliceSeconds)
      // A slice begins where the last one ended, so that everybody is written to in turn.
      const begin = sends % recipients.length
      const turned = [...recipients.slice(begin), ...recipients.slice(0, begin)]
      sends += (await sendPaced(project, sender, { recipients: turned, ratePerSecond: rate, seconds })).length
      deliveries += await receiver.ask('take', undefined)
      say(`  ${((performance.now() - startedAt) / 60_000).toFixed(1)} minutes, ${sends} sends`)
    }
  } finally {
    clearInterval(looking)
  }
  look()
  const backlogAtEnd = { ...(await backlogOf(project)) }
  const endedAt = performance.now()
  await drain(project)
  const drainedMs = performance.now() - endedAt
  deliveries += await takeAll(project, receiver)
  return { sends, deliveries, expired: await expiredOf(project), rss, backlogAtEnd, drainedMs }
}

async function expiredOf(project: Project) {
  const [row] = await project.sql()<{ count: number }[]>`
    select count(*)::int as count from webhooks.dead_deliveries where error_code = 'expired'
  `
  return row?.count ?? 0
}

const rateNote = ({ most, rate }: WholeLives) =>
  `soak: the machine carries ${most.toFixed(0)} sends a second until all is delivered; ${rate} a second were sent`

function notesOf({ sends, deliveries, expired, rss, backlogAtEnd, drainedMs }: Soaked, minutes: number): string[] {
  const missing = sends * eventsOfOne - deliveries - expired
  const waiting = Object.entries(backlogAtEnd).map(([name, count]) => `${name} ${count}`)
  return [
    `  ${sends} sends in ${minutes} minutes, ${deliveries} events delivered, ${expired} given up since the subscription was too far behind: ${missing > 0 ? `${missing} ARE MISSING` : 'all'}`,
    ...Object.entries(rss).map(([name, samples]) => memoryNote(name, samples, minutes)),
    `  waiting at the end: ${waiting.join(', ')}; done ${(drainedMs / 1000).toFixed(1)} s later`,
  ]
}

/** Of the time after the warm-up. */
function memoryNote(name: string, samples: Sample[], minutes: number) {
  const warm = samples.slice(Math.floor(samples.length * warmUpShare))
  const [first = NaN, last = NaN] = [warm[0]?.value, warm.at(-1)?.value]
  const slope = slopeOf(warm)
  return `  ${name}: ${first.toFixed(0)} → ${last.toFixed(0)} MiB resident, ${slope.toFixed(1)} MiB an hour: ${verdictOf(slope, last, minutes)}`
}

function verdictOf(slope: number, holds: number, minutes: number) {
  if (minutes < tellingMinutes) return `too short to tell (${tellingMinutes} minutes would)`
  return slope > holds * growthAnHour ? 'GROWS' : 'steady'
}
