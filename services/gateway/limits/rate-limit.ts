import { mostRecent } from '@app/shared/work/most-recent.ts'
import type { Logger } from 'pino'
import { addLease, type Budget, hasOwn, newBudget, setRate, spend, usable } from './budget.ts'
import type { SharedBudgets } from './rate-lease.ts'

/** If Redis fails to answer, it is asked again after this time, and no request waits for that. */
const retryMs = 1_000
const maxBudgets = 100_000

export interface RateLimiter {
  budget: (name: string, perMinute: number) => Budget
  /** Takes one token; false when there is none. Answers at once unless a new lease is needed. */
  take: (budget: Budget) => boolean | Promise<boolean>
  /** Whether it goes on without the shared budgets: until it has a lease again, also of a Redis that answers and refuses to give one. */
  isAlone: () => boolean
}

/** The question that is out for a budget, and how many requests wait for its answer. */
interface Asking {
  waiting: number
  answer: Promise<void>
}

/**
 * Budgets of a minute, spent in bursts, shared by all gateways through leases from Redis, whose sum never exceeds the
 * budget. The process's own count is kept beside it, so that it goes on alone when Redis is slow, gone or flushed.
 */
export function createRateLimiter(shared: SharedBudgets, log: Logger, noteFallback = () => {}): RateLimiter {
  const budgets = mostRecent<string, Budget>(maxBudgets)
  const asking = new Map<Budget, Asking>()
  const redis = watch(shared, log)

  function take(budget: Budget): boolean | Promise<boolean> {
    const now = performance.now()
    if (now < budget.emptyUntil || !hasOwn(budget, now)) return false
    const isAlone = !redis.answers(now)
    if (isAlone) noteFallback()
    if (isAlone || usable(budget, now) > 0) {
      spend(budget, now)
      return true
    }
    return takeFromLease(budget)
  }

  async function takeFromLease(budget: Budget) {
    const question = asking.get(budget) ?? ask(budget)
    question.waiting++
    await question.answer
    return take(budget)
  }

  function ask(budget: Budget) {
    const question: Asking = { waiting: 0, answer: Promise.resolve() }
    asking.set(budget, question)
    question.answer = Promise.resolve()
      .then(() => lease(budget, question.waiting))
      .catch((err: unknown) => redis.failed(err))
      .finally(() => asking.delete(budget))
    return question
  }

  async function lease(budget: Budget, wanted: number) {
    const sentAt = performance.now()
    const { tokens, wholeInMs } = await shared.lease(budget.name, budget.perMinute, wanted)
    redis.served()
    addLease(budget, tokens, wholeInMs, sentAt)
  }

  return {
    take,
    isAlone: redis.isTold,
    budget(name, perMinute) {
      const budget = budgets.get(name) ?? newBudget(name, perMinute)
      setRate(budget, perMinute)
      budgets.set(name, budget)
      return budget
    },
  }
}

/** Whether Redis answers. While it does not it is pinged, not asked for a lease: a frozen one would charge all of them when it wakes. */
function watch({ ping }: SharedBudgets, log: Logger) {
  let isAway = false
  /** One that answers a ping and refuses to write (read-only, full) is away again at the next lease: that is told once. */
  let isTold = false
  let askAt = 0
  return {
    isTold: () => isTold,
    answers(now: number) {
      if (isAway && now >= askAt) {
        askAt = now + retryMs
        ping().then(
          () => {
            isAway = false
          },
          () => {},
        )
      }
      return !isAway
    },
    served() {
      if (isTold) log.info('redis answers again: rate limits are shared with the other gateways')
      isTold = false
    },
    failed(err: unknown) {
      if (!isTold) log.warn({ err }, 'redis does not answer: this process enforces rate limits on its own')
      isTold = true
      isAway = true
      askAt = performance.now() + retryMs
    },
  }
}
