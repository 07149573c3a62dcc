import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import type { Input } from '@app/shared/api/contract.ts'
import { recordCallBatch } from '@app/shared/contracts/platform.ts'
import type { Service } from '@app/shared/service/service.ts'
import { Counter } from 'prom-client'
import type { Exchange } from './exchange/exchange.ts'
import { noRoute } from './metrics.ts'

const flushEveryMs = 200
const flushAtCalls = 500
const maxBatch = 2_000
/** Half a minute of 2,000 requests a second, some 25 MB; what comes beyond that while the platform service is away is dropped. */
const maxWaiting = 60_000
const retryMs = 1_000
const stopWithinMs = 2_000
const maxPathLength = 1_024
const maxProblemLength = 200
const isPublic = /^\/v1(\/|$)/

type Batch = Required<Input<typeof recordCallBatch>['body']>
/** A call, as the columns of the log have it. */
type Entry = Record<Exclude<keyof Batch, 'batch'>, string | number | null>

/** A batch on its way. */
interface Sent {
  body: Batch
  calls: number
}

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
  const waiting: Entry[] = []
  /** What goes again, as it is, until it is known to be recorded: the receiver knows it by its name. */
  let sent: Sent | null = null
  let sending: Promise<void> | null = null
  let failing = false
  let retryAt = 0
  const timer = setInterval(() => void flush(), flushEveryMs)

  function flush(): Promise<void> {
    if (sending || performance.now() < retryAt) return sending ?? Promise.resolve()
    if (!sent && waiting.length === 0) return Promise.resolve()
    sent ??= batchOf(waiting.splice(0, maxBatch))
    sending = call(service, recordCallBatch, { body: sent.body }, systemCaller())
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
      // `/%761/me` is a way to write `/v1/me`; what is no route counts by its path.
      if (!isPublic.test(exchange.route.pattern) && !isPublic.test(pathOf(exchange))) return
      if (waiting.length + (sent?.calls ?? 0) >= maxWaiting) return dropped.inc()
      waiting.push(entryOf(exchange, answered))
      if (waiting.length >= flushAtCalls) void flush()
    },
    async stop() {
      clearInterval(timer)
      const giveUpAt = performance.now() + stopWithinMs
      while ((sent || waiting.length > 0) && performance.now() < giveUpAt) {
        retryAt = 0
        await Promise.race([flush(), sleep(giveUpAt - performance.now())])
        if (failing) await sleep(flushEveryMs)
      }
    },
  }
}

/** Column by column, a line for each call: none of the values can hold a line break. */
function batchOf(calls: Entry[]): Sent {
  const lines = (column: keyof Entry) => calls.map((one) => one[column]).join('\n')
  const body = {
    batch: randomUUID(),
    at: lines('at'),
    organization_id: lines('organization_id'),
    key_id: lines('key_id'),
    request_id: lines('request_id'),
    method: lines('method'),
    path: lines('path'),
    status: lines('status'),
    duration_ms: lines('duration_ms'),
    ip: lines('ip'),
    problem: lines('problem'),
  }
  return { body, calls: calls.length }
}

function entryOf(exchange: Exchange, { status, durationMs, refusal }: Answered): Entry {
  const { request, requestId, identity, ip } = exchange
  return {
    at: isoTime(Math.floor(Date.now() - durationMs)),
    organization_id: identity?.value.organizationId ?? null,
    key_id: identity?.value.keyId ?? null,
    request_id: requestId,
    method: request.raw.method ?? '',
    path: pathOf(exchange).slice(0, maxPathLength),
    status,
    duration_ms: Math.round(durationMs * 100) / 100,
    ip,
    problem: refusal ? wordsOf(refusal, exchange) : null,
  }
}

/** Without what would break its line, should a client have named the field; half a character would have the whole batch refused. */
const wordsOf = ({ code, param }: Refusal, { route }: Exchange) =>
  `${code} ${param ?? (code === 'resource_not_found' ? notFoundBy(route) : '')}`
    .replaceAll(/[\p{Cc}\p{Cs}]/gu, '')
    .trim()
    .slice(0, maxProblemLength)
    .toWellFormed()

/** A path that is no endpoint's gets the same answer as an id that is not there: here they differ. */
const notFoundBy = (route: Exchange['route']) => (route === noRoute ? 'path' : 'id')

const address = /^https?:\/\/[^/?#]*/i

/** The path alone: the address that may stand before it, and the query, hold what no log should. */
function pathOf({ request: { raw } }: Exchange): string {
  const { url = '' } = raw
  const path = url.startsWith('/') ? url : url.replace(address, '')
  const end = path.search(/[?#]/)
  return end === -1 ? path : path.slice(0, end)
}

const latest = { ms: 0, text: '' }

/** Under load many calls begin in one millisecond, and a date costs more than the rest of an entry. */
function isoTime(ms: number) {
  if (ms !== latest.ms) Object.assign(latest, { ms, text: new Date(ms).toISOString() })
  return latest.text
}
