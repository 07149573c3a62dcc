import type { SettingsStore } from '../settings.ts'
import { createPoster } from './poster.ts'
import type { Update } from './update.ts'
import { createWaiting, type Post } from './waiting.ts'

const connections = 8
const firstWaitMs = 200
const longestWaitMs = 3_000
const giveUpAfterMs = 10 * 60_000

export type Callbacks = ReturnType<typeof createCallbacks>

/**
 * Tells the receiver, batching by itself: while a connection is free an update leaves at once, else all that wait
 * leave together. A POST that is not answered 200 is tried again for ten minutes. One that is refused waits by itself;
 * when two are, the receiver is taken to be away, and one POST at a time asks whether it is back.
 */
export function createCallbacks(callbackUrl: string, appSecret: string, settings: SettingsStore) {
  const poster = createPoster(callbackUrl, appSecret, connections)
  const waiting = createWaiting(settings)
  const counts = { delivered: 0, refused: 0, lost: 0 }
  let inFlight = 0
  let failuresInARow = 0
  let pausedUntil = 0
  let pumping: NodeJS.Immediate | undefined
  let alarm: NodeJS.Timeout | undefined
  let stopped = false

  /** In the next turn of the loop, so that what falls due in this one leaves together. */
  function wake() {
    if (!stopped) pumping ??= setImmediate(pump)
  }

  function pump() {
    pumping = undefined
    clearTimeout(alarm)
    const now = performance.now()
    const slots = now < pausedUntil ? 0 : failuresInARow > 0 ? 1 : connections
    while (inFlight < slots) {
      const post = waiting.take(now)
      if (!post) break
      void carry(post)
    }
    const nextAt = waiting.nextAt()
    // Full slots wake by themselves, when one is answered.
    if (nextAt !== undefined && (slots === 0 || inFlight < slots))
      alarm = setTimeout(wake, Math.max(nextAt, pausedUntil) - now)
  }

  async function carry(post: Post) {
    inFlight++
    const taken = await poster.post(post.bytes)
    inFlight--
    if (taken) settle(post)
    else tryLater(post)
    wake()
  }

  function settle(post: Post) {
    counts.delivered += post.updates
    failuresInARow = 0
    pausedUntil = 0
  }

  function tryLater(post: Post) {
    const now = performance.now()
    counts.refused++
    failuresInARow++
    if (now - post.madeAt > giveUpAfterMs) counts.lost += post.updates
    else waiting.putBack({ ...post, attempts: post.attempts + 1, notBefore: now + waitMs(post.attempts) })
    if (waiting.refused() > 1) pausedUntil = now + waitMs(failuresInARow)
  }

  return {
    push: (update: Update) => {
      if (!waiting.addUpdate(update)) counts.lost++
      wake()
    },
    /** Any bytes, as they are; false when too many wait already. */
    pushBytes: (bytes: Buffer) => {
      const taken = waiting.addBytes(bytes, performance.now())
      wake()
      return taken
    },
    counts: () => ({ waiting: waiting.size(), in_flight: inFlight, ...counts }),
    stop: async () => {
      stopped = true
      clearImmediate(pumping)
      clearTimeout(alarm)
      await poster.stop()
    },
  }
}

/** 200, 400, 800, 1,600, then always 3,000. */
const waitMs = (attempts: number) => Math.min(longestWaitMs, firstWaitMs * 2 ** attempts)
