import type { ServerResponse } from 'node:http'
import { rounded } from '@app/shared/service/log.ts'
import { traceIdOf } from '@app/shared/service/tracing.ts'
import type { FastifyRequest, RouteOptions } from 'fastify'
import type { App } from '../app.ts'
import type { Route } from '../metrics.ts'
import { type Take, takeOver } from './take-over.ts'
import { traceRequest } from './trace.ts'

/** A client that went away before its answer began. */
const clientLeft = 499

/**
 * A route outside `/v1`: measured, traced and told of as those inside are. `whenLate` answers while requests are turned away because
 * the event loop is late; without it that is told as the API tells it.
 */
export function takeOverWatched(
  app: App,
  method: 'GET' | 'HEAD' | 'POST',
  pattern: string,
  take: Take,
  whenLate?: Take,
): RouteOptions {
  const route = takeOver(method, pattern, watched(app, { method, pattern }, take))
  if (whenLate === undefined) return route
  return { ...route, config: { whenLate: watched(app, { method, pattern }, whenLate) } }
}

/** The same for what is answered without a route that was found. */
export const watched =
  (app: App, route: Route, answer: Take): Take =>
  (request, reply) => {
    watch(app, route, request, reply.raw)
    answer(request, reply)
  }

function watch(
  { meters, log, tracer, warnSparingly }: App,
  route: Route,
  { headers }: FastifyRequest,
  response: ServerResponse,
) {
  const startedAt = performance.now()
  const { span, traceparent } = traceRequest({ tracer }, headers.traceparent, route)
  // Whoever reads the trace context from here on is below our span.
  headers.traceparent = traceparent
  response.once('close', () => {
    const durationMs = performance.now() - startedAt
    const status = response.headersSent ? response.statusCode : clientLeft
    meters.answered(route, status, durationMs)
    span?.end(status < 500 ? undefined : String(status))
    const level = status < 500 ? 'debug' : 'warn'
    if (!log.isLevelEnabled(level)) return
    // A path holds tokens: those of setup links, and of files.
    const { method, pattern } = route
    const line = { trace: traceIdOf(traceparent), method, route: pattern, status, durationMs: rounded(durationMs) }
    if (level === 'debug') log.debug(line, 'http')
    else warnSparingly(line, 'http')
  })
}
