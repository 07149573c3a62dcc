import { setTimeout as sleep } from 'node:timers/promises'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { recordCalls } from '@app/shared/contracts/platform.ts'
import type { Service } from '@app/shared/service/service.ts'
import { Counter } from 'prom-client'
import type { Exchange } from '../exchange/exchange.ts'
import { noRoute } from '../metrics.ts'
import { type Batch, type Call, createWaitingCalls } from './call-batch.ts'

const flushEveryMs = 200
const maxBatch = 2_000
/** Half a minute of 2,000 requests a second, some 6 MB; what comes beyond that while the platform service is away is dropped. */
const maxWaiting = 60_000
const retryMs = 1_000
const stopWithinMs = 2_000
const maxPathLength = 1_024
const maxProblemLength = 200
const isPublic = /^\/v1(\/|$)/

/** Why a call was refused. */
export interface Refusal {
  code: string
  param?: string | undefined
}

interface Answered {
  status: number
  durationMs: number
  refusal: Refusal | undefined
}

export interface ApiLog {
  record: (exchange: Exchange, answered: Answered) => void
  /** Sends what is left, for at most 2 s. */
  stop: () => Promise<void>
}

/** The log of every call under /v1, written in batches, one at a time. A gateway that is killed loses its last milliseconds of it. */
export function startApiLog(service: Pick<Service, 'request' | 'isConnected' | 'log' | 'probes'>): ApiLog {
  const dropped = new Counter({
    name: 'svc_api_log_dropped_total',
    help: 'Calls that the API log lost because the platform service was away for too long.',
    registers: [service.probes.metrics],
  })
  const waiting = createWaitingCalls(maxBatch)
  /** What goes again, as it is, until it is known to be recorded: the receiver knows it by its name. */
  let sent: Batch | null = null
  let sending: Promise<void> | null = null
  let failing = false
  let retryAt = 0
  const timer = setInterval(() => void flush(), flushEveryMs)

  function flush(): Promise<void> {
    if (sending || performance.now() < retryAt) return sending ?? Promise.resolve()
    sent ??= waiting.take()
    if (!sent) return Promise.resolve()
    sending = call(service, recordCalls, { body: sent.body }, systemCaller())
      .then(() => {
        sent = null
        note(false)
      })
      .catch((err: unknown) => {
        retryAt = performance.now() + retryMs
        note(true, err)
      })
      .finally(() => (sending = null))
    return sending
  }

  function note(fails: boolean, err?: unknown) {
    if (fails !== failing)
      service.log.warn(
        { err },
        fails ? 'calls for the API log wait: they cannot be stored' : 'calls are stored in the API log again',
      )
    failing = fails
  }

  return {
    record(exchange, answered) {
      const path = pathOf(exchange)
      // `/%761/me` is a way to write `/v1/me`; what is no route counts by its path.
      if (!isPublic.test(exchange.route.pattern) && !isPublic.test(path)) return
      if (waiting.size + (sent?.calls ?? 0) >= maxWaiting) return dropped.inc()
      waiting.add(callOf(exchange, path, answered))
      if (waiting.size >= maxBatch) void flush()
    },
    async stop() {
      clearInterval(timer)
      const giveUpAt = performance.now() + stopWithinMs
      while ((sent || waiting.size > 0) && performance.now() < giveUpAt) {
        retryAt = 0
        await Promise.race([flush(), sleep(giveUpAt - performance.now())])
        if (failing) await sleep(flushEveryMs)
      }
    },
  }
}

const callOf = (exchange: Exchange, path: string, { status, durationMs, refusal }: Answered): Call => ({
  exchange,
  beganAt: Math.floor(Date.now() - durationMs),
  durationMs,
  status,
  method: exchange.request.raw.method ?? '',
  path: path.replaceAll(secret, '$1***'),
  problem: refusal ? wordsOf(refusal, exchange.route, path) : '',
})

/** Without what would break its line, should a client have named the field; half a character would have the whole batch refused. */
const wordsOf = ({ code, param }: Refusal, route: Exchange['route'], path: string) =>
  `${code} ${param ?? (code === 'resource_not_found' ? notFoundBy(route, path) : '')}`
    .replaceAll(/[\p{Cc}\p{Cs}]/gu, '')
    .replaceAll(secret, '$1***')
    .trim()
    .slice(0, maxProblemLength)
    .toWellFormed()

/**
 * A path that is no endpoint's gets the same answer as an id that is not there: here they differ. One that ends in a slash is taken for
 * an endpoint's with an empty id.
 */
const notFoundBy = (route: Exchange['route'], path: string) => (route === noRoute || path.endsWith('/') ? 'path' : 'id')

/** A key or a signing secret, which a client may write in the place of an id. Its beginning alone is kept. */
const secret = /(svc_live_|whsec_)[\w-]+/g

const address = /^https?:\/\/[^/?#]*/i

/** The path alone: the address that may stand before it, and the query, hold what no log should. */
function pathOf({ request: { raw } }: Exchange): string {
  const { url = '' } = raw
  const path = url.startsWith('/') ? url : url.replace(address, '')
  const end = path.search(/[?#]/)
  return path.slice(0, end === -1 ? maxPathLength : Math.min(end, maxPathLength))
}
