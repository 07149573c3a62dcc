import type { SettingsStore } from '../settings.ts'
import { accountOf, type Update } from './update.ts'

/** Updates that fall due together share a timer: thousands of sends a second make some hundred timers. */
const tickMs = 5

export type Schedule = ReturnType<typeof createSchedule>

/**
 * Hands updates on when they are due, later and again as the settings say. `subscriptions` are the business accounts that
 * the app wants to hear of.
 */
export function createSchedule(settings: SettingsStore, subscriptions: Set<string>, push: (update: Update) => void) {
  const due = new Map<number, Array<() => void>>()
  const timers = new Set<NodeJS.Timeout>()
  let waiting = 0

  function at(delayMs: number, act: () => void) {
    waiting++
    const now = performance.now()
    const tick = Math.ceil((now + delayMs) / tickMs) * tickMs
    const acts = due.get(tick)
    if (acts) return void acts.push(act)
    due.set(tick, [act])
    const timer = setTimeout(() => {
      timers.delete(timer)
      run(tick)
    }, tick - now)
    timers.add(timer)
  }

  function run(tick: number) {
    const acts = due.get(tick) ?? []
    due.delete(tick)
    waiting -= acts.length
    for (const act of acts) act()
  }

  function now(update: Update) {
    const { duplicates, status_delay_ms: delayMs, require_subscription: mustBeWanted } = settings.current
    if (mustBeWanted && !subscriptions.has(accountOf(update))) return
    leave(update, 0)
    for (let copy = 1; copy <= duplicates; copy++) leave(update, delayMs * copy)
  }

  function leave(update: Update, afterMs: number) {
    const { callback_delay_ms: delayMs, callback_jitter_ms: jitterMs } = settings.current
    const waitMs = afterMs + delayMs + Math.random() * jitterMs
    if (waitMs === 0) push(update)
    else at(waitMs, () => push(update))
  }

  return {
    now,
    /** `make` runs when the time has come, so that an update bears the time at which it leaves. */
    after: (delayMs: number, make: () => Update) => at(delayMs, () => now(make())),
    /** Does something when the time has come. */
    afterAct: at,
    waiting: () => waiting,
    stop: () => {
      for (const timer of timers) clearTimeout(timer)
    },
  }
}
