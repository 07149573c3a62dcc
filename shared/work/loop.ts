import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway } from '../database/database.ts'
import type { Service } from '../service/service.ts'

export interface Loop {
  wake: () => void
  stop: () => Promise<void>
}

const longestBackoffMs = 2_000

interface Options {
  /**
   * The least time from one turn's beginning to the next. A loop that sleeps begins at once; under load its turns take more
   * together instead of following each other: measured with 5 ms, a send costs a third of the statements.
   */
  spacingMs?: number
}

/**
 * Runs `turn` again and again, one at a time: when woken, and after the number of ms that it returned (±50 %, so that instances do not
 * run together). Infinity waits for a wake; 0 goes on at once. A turn that throws is logged and repeated with exponential back-off.
 */
export function startLoop(
  log: Service['log'],
  name: string,
  turn: () => Promise<number>,
  { spacingMs = 0 }: Options = {},
): Loop {
  let stopped = false
  let begunAt = -Infinity
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
    let waitMs = Infinity
    while (!stopped && (woken || waitMs === 0)) {
      const earlyMs = begunAt + spacingMs - performance.now()
      if (earlyMs > 0 && waitMs !== 0) await sleep(earlyMs)
      begunAt = performance.now()
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
