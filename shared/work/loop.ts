import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway, isLoginRefused } from '../database/database.ts'
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
 * A turn is told whether it is a poll: nobody has woken it, so most likely it finds nothing, and may look before it begins.
 */
export function startLoop(
  log: Service['log'],
  name: string,
  turn: (isPoll: boolean) => Promise<number>,
  { spacingMs = 0 }: Options = {},
): Loop {
  let stopped = false
  let begunAt = -Infinity
  let running: Promise<void> | undefined
  let woken = false
  let polling = false
  let timer: NodeJS.Timeout | undefined
  let failures = 0

  async function guarded(isPoll: boolean) {
    try {
      const waitMs = await turn(isPoll)
      failures = 0
      return waitMs
    } catch (err) {
      const level = isLoginRefused(err) ? 'error' : 'warn'
      if (isDatabaseAway(err)) log[level]({ err, loop: name }, 'waiting for the database')
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
      const isPoll = polling
      woken = polling = false
      waitMs = await guarded(isPoll)
    }
    running = undefined
    if (!stopped && Number.isFinite(waitMs)) timer = setTimeout(begin, waitMs * (0.5 + Math.random()), true)
  }

  function begin(isPoll: boolean) {
    polling = isPoll
    woken = true
    if (running || stopped) return
    clearTimeout(timer)
    running = run()
  }

  return {
    wake: () => begin(false),
    async stop() {
      stopped = true
      clearTimeout(timer)
      await running
    },
  }
}
