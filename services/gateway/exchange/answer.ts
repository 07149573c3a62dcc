import type { Problem } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { pushRateHeaders } from '../limits/rate-headers.ts'
import type { Exchange } from './exchange.ts'

/** A body up to this size leaves in one write with its headers; a larger one is not worth the copy. */
const oneWriteBytes = 64 * 1024

/** Writes the one answer of an exchange: the bytes as they are, the headers that every answer has, and `more`. */
export function answer(app: App, exchange: Exchange, status: number, body: Uint8Array, more?: string[]): void {
  const { request, response, requestId, identity, budget } = exchange
  const headers = [
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(body.length),
    'X-Request-Id',
    requestId,
  ]
  if (budget) pushRateHeaders(headers, budget === identity?.value.read ? 'read' : 'write', budget)
  if (more) headers.push(...more)
  if (app.isStopping() || isEndless(exchange)) headers.push('Connection', 'close')
  response.writeHead(status, headers)
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  // Latin-1 maps each byte to a character and back: text and headers then are one string, one write.
  if (bytes.length <= oneWriteBytes) response.end(bytes.toString('latin1'), 'latin1')
  else response.end(bytes)

  const durationMs = performance.now() - exchange.startedAt
  const { method, url = '' } = request.raw
  app.apiLog.record(exchange, status, durationMs)
  if (status >= 500) app.log.warn({ request: requestId, method, url: pathOf(url), status, durationMs }, 'http')
  else if (app.log.isLevelEnabled('debug'))
    app.log.debug({ request: requestId, method, url: pathOf(url), status, durationMs }, 'http')
}

/** A failure, in the envelope of the public API. Its cause is for the log alone. */
export function answerProblem(app: App, exchange: Exchange, problem: Problem): void {
  const { requestId, response } = exchange
  if (problem.status >= 500) {
    app.log[problem.status === 503 ? 'warn' : 'error']({ err: problem.cause ?? problem, request: requestId }, 'failed')
  }
  if (response.headersSent) return
  const more = problem.retryAfterSeconds === undefined ? undefined : ['Retry-After', String(problem.retryAfterSeconds)]
  answer(app, exchange, problem.status, Buffer.from(JSON.stringify(problem.toEnvelope(requestId))), more)
}

/** A refused body is read to its end and thrown away, so that the client gets to see why; one beyond this is cut off. */
const maxDumpedBytes = 8 * 1024 * 1024
const isEndless = ({ request }: Exchange) => Number(request.headers['content-length'] ?? 0) > maxDumpedBytes

/** The path of a URL: query strings hold what no log should. */
export function pathOf(url: string): string {
  const end = url.indexOf('?')
  return end === -1 ? url : url.slice(0, end)
}
