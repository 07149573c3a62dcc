import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { startChild } from '../child.ts'
import type { PacedSends } from '../load/paced-sends.ts'
import type { Receiver } from '../load/receiver.ts'
import { memoryMibOf } from '../processes.ts'
import { backlogOf, drain } from '../project/backlog.ts'
import { control } from '../project/control.ts'
import type { Project } from '../project/project.ts'
import { sendPaced } from '../project/send-paced.ts'
import { subscribe } from '../project/subscriptions.ts'
import { sustained } from '../project/sustained.ts'
import { type Sample, slopeOf } from '../slope.ts'
import type { Goal } from './goal.ts'

/** Of what the machine carries. */
const share = 0.7
/** In the quick slice, whose few recipients may not be written to more often. */
const quickRate = 20
/** `message.sent`, and three of `message.status`. */
const eventsOfOne = 4
/** The sender and the receiver begin afresh so often, so that they do not remember a soak of hours. */
const sliceSeconds = 20
const lookEveryMs = 2_000
const quietMs = 1_000
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
export const measureSoak: Goal = async (bench) => {
  const project = await bench.project()
  const { simulator_url: simulatorUrl } = project.stack()
  await bench.fixture()
  const [sender, receiver] = [startChild<PacedSends>('load/paced-sends.ts'), startChild<Receiver>('load/receiver.ts')]
  const { url } = await receiver.ask('start', undefined)
  await control(simulatorUrl, 'POST', 'settings', { statuses: ['sent', 'delivered', 'read'] })
  const subscription = await subscribe(project, { url: `${url}/soak`, events: ['message.sent', 'message.status'] })
  try {
    const most = await sustained(bench, project)
    await takeAll(project, receiver)
    const rate = bench.options.quick ? quickRate : Math.max(1, Math.floor(most * share))
    const soaked = await soak(bench, project, rate, { sender, receiver })
    return { figures: [], notes: [rateNote(most, rate), ...notesOf(soaked, bench.options.minutes)], details: soaked }
  } finally {
    await subscription.delete()
    await control(simulatorUrl, 'POST', 'settings', { statuses: [] })
    await Promise.all([sender.stop(), receiver.stop()])
  }
}

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

interface Outside {
  sender: ReturnType<typeof startChild<PacedSends>>
  receiver: ReturnType<typeof startChild<Receiver>>
}

async function soak(
  { options, fixture, say }: Bench,
  project: Project,
  ratePerSecond: number,
  { sender, receiver }: Outside,
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
      sends += (await sendPaced(project, sender, { recipients: turned, ratePerSecond, seconds })).length
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

/** Until a second brings nothing more: the platform tells statuses a while after a send, and before that nothing waits here. */
async function takeAll(project: Project, receiver: Outside['receiver']) {
  let taken = 0
  for (;;) {
    await sleep(quietMs)
    await drain(project)
    const more = await receiver.ask('take', undefined)
    if (more === 0) return taken
    taken += more
  }
}

const rateNote = (most: number, rate: number) =>
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
