import type { Service } from '@app/shared/service.ts'
import { createKeys, type Keys } from './access/authenticate.ts'
import { type Accounts, createAccounts } from './access/find-account.ts'
import { type ApiLog, startApiLog } from './api-log.ts'
import { createRunOnce, type RunOnce } from './idempotency.ts'
import { createInFlight, type InFlight } from './limits/in-flight.ts'
import { createRateLimiter, type RateLimiter } from './limits/rate-limit.ts'
import type { SharedBudgets } from './limits/rate-lease.ts'
import { type Answers, exposeMetrics } from './metrics.ts'

/** What the gateway's parts may use. */
export interface App extends Service {
  keys: Keys
  accounts: Accounts
  limiter: RateLimiter
  inFlight: InFlight
  runOnce: RunOnce
  apiLog: ApiLog
  answers: Answers
  /** How many proxies stand before this process and are believed. */
  trustedProxies: number
  /** From the stop signal on: each connection ends with its next answer. */
  isStopping: () => boolean
  beginStop: () => void
}

export function createApp(service: Service, budgets: SharedBudgets, trustedProxies: number): App {
  const limiter = createRateLimiter(budgets, service.log)
  const inFlight = createInFlight()
  const answers: Answers = new Map()
  exposeMetrics(service.probes.metrics, answers, inFlight)
  let stopping = false
  return {
    ...service,
    keys: createKeys(service, limiter),
    accounts: createAccounts(service),
    limiter,
    inFlight,
    runOnce: createRunOnce(),
    apiLog: startApiLog(service),
    answers,
    trustedProxies,
    isStopping: () => stopping,
    beginStop: () => (stopping = true),
  }
}
