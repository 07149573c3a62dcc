import { Problem } from '@app/shared/api/problem.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'

/** So many look-ups at once, then one each interval: 300 an hour, when the platform allows an account 5,000 calls. */
const burst = 20
const intervalMs = 12_000
/** How long the platform's "no such template" is taken without asking again. */
const absentMs = 10_000

/** Nobody knows whether there is such a template: the same send may go through later. */
const usedUp = () =>
  new Problem('rate_limit_exceeded', {
    message:
      'Too many templates that are not known here were asked for: sync the templates, or send the same again later.',
    retryAfterSeconds: intervalMs / 1000,
  })

/** What a flood of unknown names may cost: each name is asked for once at a time, and a business account so often at most. */
export interface Spending {
  /**
   * Runs the look-up, or waits for the same one that runs; does nothing if it was answered a moment ago. Throws `rate_limit_exceeded`
   * when the budget is used up.
   */
  lookUp: (businessAccount: string, name: string, ask: () => Promise<void>) => Promise<void>
}

export function createSpending(now: () => number = () => performance.now()): Spending {
  const running = new Map<string, Promise<void>>()
  const asked = mostRecent<string, number>(50_000)
  /** The moment from which an account's whole burst is there again. */
  const fullAt = mostRecent<string, number>(50_000)

  function take(businessAccount: string) {
    const from = Math.max(fullAt.get(businessAccount) ?? 0, now())
    if (from - now() > (burst - 1) * intervalMs) return false
    fullAt.set(businessAccount, from + intervalMs)
    return true
  }

  return {
    async lookUp(businessAccount, name, ask) {
      const key = `${businessAccount} ${name}`
      const same = running.get(key)
      if (same) return same
      if (now() - (asked.get(key) ?? -Infinity) < absentMs) return
      if (!take(businessAccount)) throw usedUp()
      const job = ask()
        .then(() => void asked.set(key, now()))
        .finally(() => running.delete(key))
      running.set(key, job)
      return job
    },
  }
}
