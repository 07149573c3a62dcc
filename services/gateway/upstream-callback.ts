import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { acceptCallbacks } from '@app/shared/contracts/messaging.ts'
import { newId } from '@app/shared/values/ids.ts'
import { pack } from '@app/shared/values/packed.ts'
import { batched } from '@app/shared/work/batched.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { mostRecent } from '@app/shared/work/most-recent.ts'
import type { LRUCache } from 'lru-cache'
import type { App } from './app.ts'
import { readBody } from './exchange/read-body.ts'
import { say } from './exchange/say.ts'
import { takeOverWatched } from './exchange/watched.ts'
import { traceparentOf } from './exchange/trace.ts'
import { strangersOf } from './limits/in-flight.ts'

/** The platform's callbacks have at most 3 MB; the bus takes 8 MiB. */
const limitBytes = 4 * 1024 * 1024
/** The platform repeats what was not answered in time. */
const timeoutMs = 10_000
/** How long a network from which the platform has signed is believed to be the platform's. */
const provenMs = 24 * 60 * 60_000

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
  const keep = keeping(app)
  const proven = mostRecent<string, true>(10_000, { ttl: provenMs })
  http.route(
    takeOverWatched(app, 'POST', '/upstream/callbacks', (request, reply) => {
      reply.hijack()
      void accept(app, { keep, proven, appSecret: secrets.appSecret }, request)
        .catch((err: unknown) => failureOf(app, err))
        .then((status) => say(app, reply.raw, status, words[status]))
    }),
  )
}

function failureOf({ warnSparingly }: App, err: unknown): 400 | 413 | 503 {
  const problem = err instanceof Problem ? err : undefined
  if (problem?.status === 413) return 413
  if (problem?.status === 400) return 400
  // Refused for what this process holds of its network: none of our failures, and no line of the log.
  if (problem?.failure === 'service_unavailable' && problem.cause === undefined) return 503
  warnSparingly({ err: problem?.cause ?? err }, 'callback')
  return 503
}

type Query = Record<string, unknown>
const words = { 200: 'ok', 400: 'bad request', 401: 'unauthorized', 413: 'too large', 503: 'try again' } as const

/** A callback on its way to be kept. */
interface Proven {
  body: Uint8Array
  trace: string
}

type Keep = (callback: Proven) => Promise<boolean>

/**
 * Callbacks of one turn of the event loop are one question. None waits for an answer to those before it, so that an instance
 * that is frozen holds up no more than what it was asked.
 */
const keeping = (app: App): Keep =>
  batched<Proven, boolean>((callbacks) => askToKeep(app, callbacks), {
    inFlight: Infinity,
    sizeOf: ({ body }) => body.length,
  })

async function askToKeep(app: App, callbacks: Proven[]): Promise<boolean[]> {
  const body = pack(callbacks.map((callback) => callback.body))
  // Of several traces the first has the question among its spans.
  const caller = { ...systemCaller('', newId('req')), traceparent: callbacks[0]?.trace ?? '' }
  const { accepted } = await call(app, acceptCallbacks, { body }, caller, { timeoutMs })
  return accepted
}

interface Accepting {
  keep: Keep
  /** Strangers among whom the platform was: what comes from there is not counted as theirs. */
  proven: LRUCache<string, true>
  appSecret: string
}

async function accept(
  app: App,
  { keep, proven, appSecret }: Accepting,
  { raw, headers }: FastifyRequest,
): Promise<200 | 401 | 503> {
  const signature = headers['x-hub-signature-256']
  // Without one nothing is read, and nothing held.
  if (typeof signature !== 'string') return 401
  const strangers = strangersOf(app, raw)
  const platform = `the platform among ${strangers}`
  const owner = proven.has(strangers) ? platform : strangers
  const body = await readBody(raw, limitBytes, app.inFlight, owner)
  try {
    if (!isSigned(body, signature, appSecret)) return 401
    proven.set(strangers, true)
    const callback = { body, trace: traceparentOf(headers.traceparent) }
    const isKept = await app.inFlight.during(platform, () => keep(callback))
    return isKept ? 200 : 503
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
