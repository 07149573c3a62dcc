import type { TimelyLines } from '@app/shared/bus/in-turn.ts'
import { counts } from '@app/shared/metrics/registered.ts'
import type { Service } from '@app/shared/service/service.ts'
import type { Store } from '@app/shared/store/store.ts'
import { createTurns, type Turns } from '@app/shared/work/turns.ts'
import { createKeys, type Keys } from './access/authenticate.ts'
import { type Accounts, createAccounts } from './access/find-account.ts'
import { type ApiLog, startApiLog } from './api-log/api-log.ts'
import { mostLines, sparingly } from './exchange/sparingly.ts'
import { createRunOnce, type RunOnce } from './idempotency.ts'
import { createInFlight, type InFlight } from './limits/in-flight.ts'
import { createLookUpTurns } from './limits/look-up-turns.ts'
import { createRateLimiter, type RateLimiter } from './limits/rate-limit.ts'
import type { SharedBudgets } from './limits/rate-lease.ts'
import { createMeters, exposeStanding, type Meters } from './metrics.ts'

/** What the gateway's parts may use. */
export interface App extends Service {
  keys: Keys
  accounts: Accounts
  limiter: RateLimiter
  inFlight: InFlight
  /** Look-ups of files, for whoever has an address. */
  fileTurns: TimelyLines
  runOnce: RunOnce
  apiLog: ApiLog
  meters: Meters
  /** Lines about what went wrong for strangers, perhaps because of them. */
  warnSparingly: ReturnType<typeof sparingly>
  /** Where files lie. */
  store: Store
  /** Uploads at a time, of each organization too: each may hold some megabytes, and takes as long as its client does. */
  uploads: Turns
  /** How many proxies stand before this process and are believed. */
  trustedProxies: number
  /** From the stop signal on: each connection ends with its next answer. */
  isStopping: () => boolean
  beginStop: () => void
}

interface Given {
  budgets: SharedBudgets
  store: Store
  trustedProxies: number
}

export function createApp(service: Service, { budgets, store, trustedProxies }: Given): App {
  const fallbacks = counts(service.probes.metrics, {
    name: 'svc_limiter_fallbacks_total',
    help: 'Requests whose rate was limited by this gateway alone, since Redis did not answer.',
  })
  const limiter = createRateLimiter(budgets, service.log, () => fallbacks.inc())
  const inFlight = createInFlight()
  exposeStanding(service, inFlight, limiter)
  let stopping = false
  return {
    ...service,
    keys: createKeys(service, limiter),
    accounts: createAccounts(service),
    limiter,
    inFlight,
    fileTurns: createLookUpTurns(),
    runOnce: createRunOnce(),
    apiLog: startApiLog(service),
    meters: createMeters(service),
    warnSparingly: sparingly(mostLines, (...line) => service.log.warn(...line)),
    store,
    uploads: createTurns({ ofOne: 8, inAll: 32, firsts: 64 }),
    trustedProxies,
    isStopping: () => stopping,
    beginStop: () => (stopping = true),
  }
}
