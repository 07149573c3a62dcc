import type { History } from './history.ts'

/** Each fault lasts five seconds at most, several meet, and what was killed starts again. */
const mostMs = 30_000

/** A stack that refuses everything loses nothing, and is of no use: for so long at most no change succeeds, however often it is asked for. */
export function awake({ calls }: Pick<History, 'calls'>): string[] {
  const changes = calls.filter(({ method }) => method !== 'GET').toSorted((a, b) => a.endedAt - b.endedAt)
  let refusedSince: number | undefined
  let longestMs = 0
  for (const { status, startedAt, endedAt } of changes) {
    if (status !== null && status < 500) refusedSince = undefined
    else {
      refusedSince ??= startedAt
      longestMs = Math.max(longestMs, endedAt - refusedSince)
    }
  }
  return longestMs > mostMs ? [`awake: no change succeeded for ${Math.round(longestMs / 1_000)} s`] : []
}
