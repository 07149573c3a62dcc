import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { ask } from '@app/shared/bus/ask.ts'
import { acceptCallback } from '@app/shared/contracts/messaging.ts'
import { newId } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from './app.ts'
import { respond } from './exchange/respond.ts'
import { readBody } from './exchange/read-body.ts'
import { takeOverWatched } from './exchange/watched.ts'
import { traceparentOf } from './exchange/trace.ts'
import { strangersOf } from './limits/in-flight.ts'

/** The platform's callbacks have at most 3 MB; the bus takes 8 MiB. */
const limitBytes = 4 * 1024 * 1024
/** The platform repeats what was not answered in time. */
const timeoutMs = 10_000

/** What the upstream platform and we have agreed on. */
export interface UpstreamSecrets {
  appSecret: string
  verifyToken: string
}

/** `GET` and `POST /upstream/callbacks`: outside the envelope, proven by the platform's signature, 200 once it is stored. */
export function routeUpstreamCallbacks(http: FastifyInstance, app: App, secrets: UpstreamSecrets): void {
  http.route(
    takeOverWatched(app, 'GET', '/upstream/callbacks', (request, reply) => {
      reply.hijack()
      const { 'hub.mode': mode, 'hub.verify_token': token, 'hub.challenge': challenge } = request.query as Query
      const isOurs = mode === 'subscribe' && isSame(token, secrets.verifyToken)
      if (!isOurs || typeof challenge !== 'string') return say(app, reply.raw, 403, 'forbidden')
      say(app, reply.raw, 200, challenge)
    }),
  )
  http.route(
    takeOverWatched(app, 'POST', '/upstream/callbacks', (request, reply) => {
      reply.hijack()
      void accept(app, request, secrets.appSecret)
        .catch((err: unknown) => failureOf(app, err))
        .then((status) => say(app, reply.raw, status, words[status]))
    }),
  )
}

function failureOf({ log }: App, err: unknown): 400 | 413 | 503 {
  const problem = err instanceof Problem ? err : undefined
  if (problem?.status === 413) return 413
  if (problem?.status === 400) return 400
  // Refused for what this process holds of its network: a stranger would write the log as fast as it can ask.
  if (problem?.failure === 'service_unavailable' && problem.cause === undefined) return 503
  log.warn({ err: problem?.cause ?? err }, 'callback')
  return 503
}

type Query = Record<string, unknown>
const words = { 200: 'ok', 400: 'bad request', 401: 'unauthorized', 413: 'too large', 503: 'try again' } as const

async function accept(app: App, { raw, headers }: FastifyRequest, appSecret: string): Promise<200 | 401 | 503> {
  const signature = headers['x-hub-signature-256']
  // Without one nothing is read, and nothing held.
  if (typeof signature !== 'string') return 401
  const owner = strangersOf(app, raw)
  const body = await readBody(raw, limitBytes, app.inFlight, owner)
  try {
    if (!isSigned(body, signature, appSecret)) return 401
    const header = {
      organization: '',
      key: '',
      request: newId('req'),
      remainingMs: timeoutMs,
      trace: traceparentOf(headers.traceparent),
      params: {},
      query: {},
    }
    const { failure } = await app.inFlight.during(owner, () => ask(app, acceptCallback, header, body))
    return failure === null ? 200 : 503
  } finally {
    app.inFlight.hold(owner, -body.length)
  }
}

const isSigned = (body: Uint8Array, signature: string, appSecret: string) =>
  isSame(signature, `sha256=${createHmac('sha256', appSecret).update(body).digest('hex')}`)

/** Compares in constant time, whatever the lengths. */
const isSame = (given: unknown, expected: string) =>
  typeof given === 'string' && timingSafeEqual(digest(given), digest(expected))

const digest = (text: string) => hash('sha256', text, 'buffer')

function say(app: App, response: ServerResponse, status: number, text: string) {
  const headers = ['Content-Type', 'text/plain; charset=utf-8', 'X-Content-Type-Options', 'nosniff']
  headers.push('Content-Length', String(Buffer.byteLength(text)))
  if (status === 503) headers.push('Retry-After', '1')
  if (app.isStopping()) headers.push('Connection', 'close')
  respond(response, status, headers, text)
}
