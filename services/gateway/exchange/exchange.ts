import type { ServerResponse } from 'node:http'
import { newId } from '@app/shared/values/ids.ts'
import { Problem, toProblem } from '@app/shared/api/problem.ts'
import type { Span } from '@app/shared/service/tracing.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { authenticate, type Identity } from '../access/authenticate.ts'
import { clientIp } from '../access/client-ip.ts'
import type { Known } from '../access/look-up.ts'
import type { App } from '../app.ts'
import { type Budget, standingOf } from '../limits/budget.ts'
import { answerProblem } from './answer.ts'
import type { Route } from '../metrics.ts'
import { traceRequest } from './trace.ts'

/**
 * How long a client waits for its answer. It is no longer because a request that lies in a frozen instance is still done when that goes
 * on, perhaps after its client has lost patience and asked again.
 */
export const deadlineMs = 10_000
/** Where the platform or the host of a file is asked before the answer. */
export const outsideDeadlineMs = 25_000
/** Longer paths are refused; the longest that the API needs is a template name of 512 characters, each of them `%xx`. */
const maxUrlLength = 8_192

/** One request under `/v1`, from its arrival to its answer. */
export interface Exchange {
  request: FastifyRequest
  response: ServerResponse
  requestId: string
  /** performance.now */
  startedAt: number
  /** performance.now of the moment after which nobody waits for the answer. */
  deadline: number
  ip: string
  route: Route
  /** W3C trace context. */
  traceparent: string
  span: Span | null | undefined
  /** Who asks, once that is known. */
  identity: Known<Identity> | null
  /** What it spends of. */
  budget: Budget | null
}

/** An exchange that may go on: a valid key asks, and has not used up its budget. */
export interface Admitted extends Exchange {
  identity: Known<Identity>
}

/** What is done for an admitted request: it answers, or throws what is answered. */
export type Work = (app: App, exchange: Admitted) => void | Promise<void>

export function openExchange(app: App, request: FastifyRequest, reply: FastifyReply, route: Route): Exchange {
  // The answer is written by us, as the bytes that it came in.
  reply.hijack()
  const startedAt = performance.now()
  return {
    request,
    response: reply.raw,
    requestId: newId('req'),
    startedAt,
    deadline: startedAt + deadlineMs,
    ip: clientIp(request.raw, app.trustedProxies),
    route,
    ...traceRequest(app, request.headers.traceparent, route),
    identity: null,
    budget: null,
  }
}

/**
 * Everything that needs a key goes this way: who is it, may it ask again so soon, then the work. Never throws. Nothing is
 * awaited that is known already.
 */
export async function serve(
  app: App,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  work: Work,
): Promise<void> {
  const exchange = openExchange(app, request, reply, route)
  try {
    const found = authenticate(app, exchange)
    exchange.identity = found instanceof Promise ? await found : found
    const admitted = exchange as Admitted
    const spending = spendOne(app, admitted)
    if (spending) await spending
    if (request.url.length > maxUrlLength) throw new Problem('uri_too_long')
    await work(app, admitted)
  } catch (err) {
    answerProblem(app, exchange, toProblem(err))
  }
}

function spendOne({ limiter }: App, exchange: Admitted) {
  const { read, write } = exchange.identity.value
  const budget = exchange.request.method === 'GET' ? read : write
  exchange.budget = budget
  const taken = limiter.take(budget)
  return taken === true ? undefined : orRefuse(budget, taken)
}

async function orRefuse(budget: Budget, taken: boolean | Promise<boolean>) {
  if (await taken) return
  throw new Problem('rate_limit_exceeded', { retryAfterSeconds: standingOf(budget).tokenInSeconds })
}
