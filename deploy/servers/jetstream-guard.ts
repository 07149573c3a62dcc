import { statfsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Supervised } from '../processes/supervise.ts'

interface Guarded {
  server: Supervised
  monitorUrl: string
  /** Where the streams are. */
  storeFolder: string
  /** Told of each restart. */
  say: (sentence: string) => void
  lookEveryMs?: number
  /** A look has failed that is not answered by then. */
  answerWithinMs?: number
  /** What it needs to go on: with less it would stop at once again. Some blocks of a stream. */
  leastFreeBytes?: number
}

/** In a row, before it is started again. */
const looksInVain = 3

/**
 * Starts a nats-server again that keeps no events any more, once its disk has room. After a write that found the disk full,
 * 2.9 never answers a question about its streams again, and newer ones switch JetStream off; all of them go on passing
 * questions and answers, and none of them recovers by itself.
 */
export function keepJetStream(guarded: Guarded): { stop: () => Promise<void> } {
  const { server, monitorUrl, storeFolder, say, lookEveryMs = 2_000, answerWithinMs = 2_000 } = guarded
  const { leastFreeBytes = 32 * 1024 * 1024 } = guarded
  const stopping = new AbortController()
  let soundPid: number | undefined
  let inVain = 0

  async function look() {
    const pid = server.pid()
    const state = pid === undefined ? 'away' : await stateOf(monitorUrl, answerWithinMs)
    if (state === 'sound') soundPid = pid
    // One that has not been sound yet reads its streams; one that answers nothing is frozen, or gone.
    inVain = state === 'stuck' && pid === soundPid ? inVain + 1 : 0
    if (
      inVain < looksInVain ||
      freeBytesOf(storeFolder) < leastFreeBytes ||
      stopping.signal.aborted ||
      server.isStopped()
    )
      return
    inVain = 0
    say('nats keeps no events any more, since its disk was full; starting it again')
    await server.stop()
    if (!stopping.signal.aborted) server.start()
  }

  async function watch() {
    while (!stopping.signal.aborted) {
      await sleep(lookEveryMs, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
      if (!stopping.signal.aborted) await look()
    }
  }

  const watching = watch()
  return {
    stop: () => {
      stopping.abort()
      return watching
    },
  }
}

async function stateOf(monitorUrl: string, answerWithinMs: number): Promise<'sound' | 'stuck' | 'away'> {
  const ask = (path: string) => fetch(`${monitorUrl}${path}`, { signal: AbortSignal.timeout(answerWithinMs) })
  try {
    if (!(await ask('/healthz')).ok) return 'stuck'
  } catch {
    return 'away'
  }
  return ask('/jsz').then(
    ({ ok }) => (ok ? 'sound' : 'stuck'),
    () => 'stuck',
  )
}

function freeBytesOf(folder: string) {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    // It is gone, or its disk fails.
    return 0
  }
}
