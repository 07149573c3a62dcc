import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway } from './database.ts'
import type { Service } from './service.ts'

export interface Loop {
  wake: () => void
  stop: () => Promise<void>
}

const longestBackoffMs = 2_000

/**
 * Runs `turn` again and again, one at a time: when woken, and after as many ms as it answered (±50 %, so that instances
 * spread; Infinity waits for a wake). A turn that throws is repeated with a growing delay.
 */
export function startLoop(log: Service['log'], name: string, turn: () => Promise<number>): Loop {
  let stopped = false
  let running: Promise<void> | undefined
  let woken = false
  let timer: NodeJS.Timeout | undefined
  let failures = 0

  async function guarded() {
    try {
      const waitMs = await turn()
      failures = 0
      return waitMs
    } catch (err) {
      if (isDatabaseAway(err)) log.warn({ err, loop: name }, 'waiting for the database')
      else log.error({ err, loop: name }, 'loop')
      await sleep(Math.min(50 * 2 ** failures++, longestBackoffMs))
      return 0
    }
  }

  async function run() {
    let waitMs = 0
    while (!stopped && (woken || waitMs === 0)) {
      woken = false
      waitMs = await guarded()
    }
    running = undefined
    if (!stopped && Number.isFinite(waitMs)) timer = setTimeout(wake, waitMs * (0.5 + Math.random()))
  }

  function wake() {
    woken = true
    if (running || stopped) return
    clearTimeout(timer)
    running = run()
  }

  return {
    wake,
    async stop() {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}
