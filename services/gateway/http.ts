import { type Http, isRpc, type Rpc } from '@app/shared/api/contract.ts'
import { getMe } from '@app/shared/contracts/platform.ts'
import { notFound, type Problem } from '@app/shared/api/problem.ts'
import fastify, { type FastifyInstance, type FastifyRequest, type RouteOptions } from 'fastify'
import type { App } from './app.ts'
import { answer, answerProblem } from './exchange/answer.ts'
import { answerMe } from './exchange/answer-me.ts'
import { answersClientErrors } from './exchange/client-errors.ts'
import { lateProblem } from './exchange/late-problem.ts'
import { openExchange, serve, type Work } from './exchange/exchange.ts'
import { heedExpectations } from './exchange/invite-body.ts'
import { passOn } from './exchange/pass-on.ts'
import { takeOver, type Take } from './exchange/take-over.ts'
import { boundConnections } from './limits/connections.ts'
import { turnAwayWhenLate } from './limits/lateness.ts'
import { connectionsWithin, openFilesLimit } from './limits/open-files.ts'
import { boundPieces } from './limits/pieces.ts'
import { boundPipelines } from './limits/pipelines.ts'
import { takeUpload } from './media/take-upload.ts'
import { brokenLink, isLink } from './onboarding/route-setup.ts'
import { noRoute, type Route } from './metrics.ts'

/** Some 20 KB each while they are idle. */
const maxConnections = 20_000
/** Beyond this mean delay of the event loop, over the last second, requests are turned away. */
export const mostDelayMs = 250

const serverOptions = {
  // Requests are logged by `answer`, one line each.
  logger: false,
  exposeHeadRoutes: false,
  // A stop lets what still arrives on open connections have its answer.
  return503OnClosing: false,
  /** The longest upload; any other body has `bodyTimeoutMs` (exchange/read-body.ts). */
  requestTimeout: 600_000,
  http: {
    maxHeaderSize: 32 * 1024,
    headersTimeout: 10_000,
    connectionsCheckingInterval: 2_000,
    // So that two Authorization headers count as one that is wrong; else Node would take the first.
    joinDuplicateHeaders: true,
    // Else Node refuses a request without one by itself, without an envelope.
    requireHostHeader: false,
  },
  /** Longer than load balancers keep an idle connection, so that it is theirs to close. */
  keepAliveTimeout: 75_000,
  /** An answer that its client does not read. */
  connectionTimeout: 60_000,
  // The length of the URL is bounded as a whole.
  routerOptions: { maxParamLength: 32 * 1024 },
} as const

/**
 * One HTTP route for every contract that declares one, and what fails wears the envelope of the public API. Fastify finds
 * the route and its parameters; from there on the request is ours, so that bodies and answers stay bytes. `maxEventLoopDelay`
 * is in milliseconds; 0: nothing is turned away.
 */
export async function buildHttp(
  app: App,
  modules: object[],
  openapi: object,
  maxEventLoopDelay = mostDelayMs,
): Promise<FastifyInstance> {
  const turnAway =
    (problem: Problem): Take =>
    (request, reply) =>
      void serve(app, noRoute, request, reply, () => {
        throw problem
      })
  const http = fastify({
    ...serverOptions,
    clientErrorHandler: answersClientErrors(app.log),
    // A path that does not decode is malformed, as any id that is not there.
    frameworkErrors: (_err, request, reply) =>
      (isLink(request) ? brokenLink(app) : turnAway(notFound()))(request, reply),
  })
  const most = connectionsWithin(openFilesLimit(), maxConnections)
  boundPipelines(http.server, boundConnections(http.server, most))
  boundPieces(http.server)
  heedExpectations(http.server)

  turnAwayWhenLate(http, maxEventLoopDelay, (request, reply) =>
    answerProblem(app, openExchange(app, request, reply, routeOf(request)), lateProblem()),
  )
  routeMeta(http, app, openapi)
  for (const contract of modules.flatMap((module) => Object.values(module)).filter(isRpc)) {
    if (!contract.http) continue
    const { method, path } = contract.http
    const work = workOf(contract, contract.http)
    const pattern = `/v1${path.replaceAll(/\{(\w+)\}/g, ':$1')}`
    const route = { method, pattern }
    http.route(takeOver(method, pattern, (request, reply) => void serve(app, route, request, reply, work)))
  }
  await http.register((unknown, _options, done) => {
    unknown.addHook('onRequest', (request, reply, _next) => turnAway(notFound())(request, reply))
    unknown.setNotFoundHandler(() => undefined)
    done()
  })
  return http
}

function workOf(contract: Rpc, http: Http): Work {
  if (contract === getMe) return answerMe
  return http.takesFile ? takeUpload : passOn(contract, http)
}

const routeOf = ({ method, routeOptions: { url } }: FastifyRequest): Route =>
  url === undefined ? noRoute : { method, pattern: url }

/** The two answers that need no key. Monitors that want no body ask with HEAD. */
function routeMeta(http: FastifyInstance, app: App, openapi: object) {
  const description = Buffer.from(JSON.stringify(openapi))
  const health: RouteOptions = takeOver(['GET', 'HEAD'], '/v1/health', (request, reply) => {
    const exchange = openExchange(app, request, reply, routeOf(request))
    answer(app, exchange, 200, Buffer.from(JSON.stringify({ status: 'ok', request_id: exchange.requestId })))
  })
  // Liveness: it answers under pressure too.
  http.route({ ...health, config: { whenLate: null } })
  http.route(
    takeOver(['GET', 'HEAD'], '/v1/openapi.json', (request, reply) => {
      answer(app, openExchange(app, request, reply, routeOf(request)), 200, description)
    }),
  )
}
