import type { Problem } from '@app/shared/api/problem.ts'
import { rounded } from '@app/shared/service/log.ts'
import { traceIdOf } from '@app/shared/service/tracing.ts'
import { z } from 'zod'
import type { App } from '../app.ts'
import { pushRateHeaders } from '../limits/rate-headers.ts'
import type { Refusal } from '../api-log/api-log.ts'
import type { Exchange } from './exchange.ts'
import { respond } from './respond.ts'

/** The bytes of a body; as text, one character for each byte (Latin-1), whatever they mean. */
type Bytes = Uint8Array | string

/** A body up to this size leaves in one write with its headers; a larger one is not worth the copy. */
const oneWriteBytes = 4 * 1024

/** Writes the one answer of an exchange: the bytes as they are, the headers that every answer has, and `more`. */
export function answer(app: App, exchange: Exchange, status: number, body: Bytes, more?: string[]): void {
  write(app, exchange, status, body, more)
  close(app, exchange, { status, refusal: status < 400 ? undefined : refusalIn(body) })
}

/** A failure, in the envelope of the public API. Its cause is for the log alone. */
export function answerProblem(app: App, exchange: Exchange, problem: Problem): void {
  const { status } = problem
  if (!exchange.response.headersSent) {
    const body = Buffer.from(JSON.stringify(problem.toEnvelope(exchange.requestId)))
    write(app, exchange, status, body, adviceOf(problem))
  }
  close(app, exchange, { status, refusal: problem, problem })
}

/** The header that says how to do better: when, or with what. HTTP asks it of every 401. */
function adviceOf({ status, retryAfterSeconds }: Problem): string[] | undefined {
  if (retryAfterSeconds !== undefined) return ['Retry-After', String(retryAfterSeconds)]
  return status === 401 ? ['WWW-Authenticate', 'Bearer'] : undefined
}

function write(app: App, exchange: Exchange, status: number, body: Bytes, more: string[] | undefined) {
  const { response, requestId, identity, budget } = exchange
  const headers = ['X-Request-Id', requestId]
  // An answer without a body says nothing of one.
  if (status !== 304)
    headers.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(body.length))
  if (budget) pushRateHeaders(headers, budget === identity?.value.read ? 'read' : 'write', budget)
  if (more) headers.push(...more)
  if (app.isStopping()) headers.push('Connection', 'close')
  if (typeof body !== 'string' && body.length > oneWriteBytes) respond(response, status, headers, body)
  else respond(response, status, headers, latin1(body), 'latin1')
}

/** Text and headers are one string, one write; bytes would be a second one. */
const latin1 = (body: Bytes) =>
  typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')

interface Outcome {
  status: number
  refusal: Refusal | undefined
  /** Of a refusal of our own. */
  problem?: Problem
}

function close({ apiLog, meters, log, warnSparingly }: App, exchange: Exchange, { status, refusal, problem }: Outcome) {
  const durationMs = performance.now() - exchange.startedAt
  apiLog.record(exchange, { status, durationMs, refusal })
  meters.answered(exchange.route, status, durationMs)
  if (problem) meters.refused(problem.failure)
  exchange.span?.end(status < 500 ? undefined : String(status))
  const level = status < 500 ? 'debug' : status === 503 ? 'warn' : 'error'
  if (!log.isLevelEnabled(level)) return
  const failed = { status, durationMs: rounded(durationMs), problem: problem?.failure, ...causeOf(problem) }
  const line = { ...lineOf(exchange), ...failed }
  // Nobody knows whose it is: strangers are turned away, too, while there is too much to do.
  if (status === 503 && !exchange.identity) warnSparingly(line, 'http')
  else log[level](line, 'http')
}

const Refused = z.object({ error: z.object({ code: z.string(), param: z.string().optional() }) })

/** What a service says in the envelope of a failure. */
function refusalIn(body: Bytes): Refusal | undefined {
  try {
    return Refused.parse(JSON.parse(Buffer.from(body).toString())).error
  } catch {
    return undefined
  }
}

/** The route, and not the path: a client may write anything there, and the API log has it. */
const lineOf = ({ requestId, request, route, identity, traceparent }: Exchange) => ({
  request: requestId,
  organization: identity?.value.organizationId,
  key: identity?.value.keyId,
  trace: traceIdOf(traceparent),
  method: request.method,
  route: route.pattern,
})

/** A 503 tells why in a word, for there may be thousands of them; a 500 with its stack. */
function causeOf(problem: Problem | undefined) {
  if (!problem || problem.status < 500) return undefined
  if (problem.status !== 503) return { err: problem.cause ?? problem }
  return { cause: problem.cause instanceof Error ? problem.cause.message : problem.message }
}
