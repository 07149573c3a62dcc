import type { AcceptedSend, History } from '../faults/history/history.ts'
import { type Asked, mayPass, tryTimeoutMs } from './honest-client.ts'

/** A kill, and the time until the next one. */
export interface Episode {
  what: string
  from: number
  to: number
  /** Until the process was there again. */
  backSeconds: number
}

/** What the run has seen. */
export interface Seen {
  asked: Asked[]
  accepted: AcceptedSend[]
  /** When the first delivery of each event came, by the event's id. */
  arrivals: Map<string, number>
}

/** How much of everything there was. */
export function countsOf({ accepted, expected, deliveries, upstream }: History, { asked }: Seen): string {
  const tries = asked.flatMap((one) => one.tries)
  const inVain = tries.filter(
    ({ status, startedAt, endedAt }) => status === null && endedAt - startedAt >= tryTimeoutMs,
  )
  return [
    `${asked.length} requests in ${tries.length} tries, ${tries.filter(mayPass).length} of them failed`,
    `${inVain.length} waited ${tryTimeoutMs / 1000} s in vain`,
    `${accepted.length} sends accepted, ${upstream.length} taken by the platform`,
    `${expected.length} events to deliver, ${deliveries.length} deliveries`,
  ].join('; ')
}

/** An event that comes later than this after its cause is late. */
const lateMs = 2_000

const heads = ['killed', 'requests', 'failed tries', 'slowest', 'tries end', 'slowest event', 'events well', 'back']

/**
 * For each kill: the requests, tries of them that failed, the slowest request with all its tries, when the last failing try
 * ended, the longest time from a send to its `message.sent`, until when events were late; all in seconds from the kill on.
 */
export function reportOf(episodes: Episode[], seen: Seen): string {
  const lines = [heads, ...episodes.map((episode) => cellsOf(episode, seen))]
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const pad = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return lines.map((line) => line.map(pad).join('  ')).join('\n')
}

function cellsOf({ what, from, to, backSeconds }: Episode, { asked, accepted, arrivals }: Seen) {
  const during = asked.filter(({ startedAt, endedAt }) => endedAt >= from && startedAt < to)
  const failed = during.flatMap(({ tries }) => tries.filter(mayPass))
  const sends = accepted.flatMap(({ id, startedAt }) => {
    const cameAt = arrivals.get(`${id}:sent`)
    return cameAt !== undefined && cameAt >= from && startedAt < to ? [{ startedAt, cameAt }] : []
  })
  const late = sends.filter(({ startedAt, cameAt }) => cameAt - startedAt > lateMs)
  return [
    what,
    String(during.length),
    String(failed.length),
    seconds(Math.max(0, ...during.map(({ startedAt, endedAt }) => endedAt - startedAt))),
    seconds(Math.max(0, ...failed.map(({ endedAt }) => endedAt - from))),
    seconds(Math.max(0, ...sends.map(({ startedAt, cameAt }) => cameAt - startedAt))),
    seconds(Math.max(0, ...late.map(({ cameAt }) => cameAt - from))),
    seconds(backSeconds * 1000),
  ]
}

const seconds = (ms: number) => (ms === 0 ? '-' : (ms / 1000).toFixed(1))
