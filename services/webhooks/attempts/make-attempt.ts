import { traceIdOf, type Span } from '@app/shared/service/tracing.ts'
import type { Core } from '../app.ts'
import type { Attempt } from './open-attempts.ts'
import { type Outcome, ourFailure, outcomeOf, payloadGone } from './outcome.ts'
import type { Payload } from './payloads.ts'
import { post } from './post.ts'
import { type KeysOf, signatureOf } from './sign.ts'

/** DNS, TCP, TLS, headers and snippet together. */
const attemptTimeoutMs = 15_000

interface Means {
  keysOf: KeysOf
  mayBegin: () => boolean
  timeoutMs?: number
}

/** Signs and posts, and tells of it; null: it came too late to begin. Never throws. */
export async function makeAttempt(core: Core, attempt: Attempt, means: Means): Promise<Outcome | null> {
  const { log, tracer } = core
  const startedAtMs = Date.now()
  const span = tracer?.begin('deliver', {
    kind: 'client',
    parent: attempt.payload?.trace ?? '',
    attributes: { organization: attempt.organizationId, delivery: attempt.id, attempt: attempt.number },
  })
  const outcome = await attemptOf(core, attempt, means, { startedAtMs, span }).catch((err: unknown) => {
    log.error({ err, delivery: attempt.id }, 'attempt')
    return ourFailure(attempt, startedAtMs)
  })
  if (outcome === null) {
    span?.end('unbegun')
    return null
  }
  const isGood = outcome.kind === 'succeeded'
  span?.end(isGood ? undefined : outcome.kind)
  const level = isGood ? 'debug' : 'info'
  if (log.isLevelEnabled(level)) log[level](lineOf(attempt, outcome), 'attempt')
  return outcome
}

interface Beginning {
  startedAtMs: number
  span: Span | null | undefined
}

async function attemptOf({ egress }: Core, attempt: Attempt, means: Means, { startedAtMs, span }: Beginning) {
  const { keysOf, mayBegin, timeoutMs = attemptTimeoutMs } = means
  const { url, payload, secrets } = attempt
  if (payload === null) return payloadGone(startedAtMs)
  const startedAt = performance.now()
  const keys = keysOf(secrets)
  if (keys.length === 0) throw new Error(`${attempt.laneId} has no secret to sign with`)
  const headers = headersOf(attempt, payload, signatureOf(keys, payload.body, startedAtMs))
  // Says nothing but two random numbers, and lets who receives it go on with the trace.
  if (span) headers.push('traceparent', span.traceparent)
  const answer = await post(egress.dispatcher, { url, headers, body: payload.body, timeoutMs, mayBegin })
  return answer && outcomeOf(answer, attempt, startedAtMs, performance.now() - startedAt)
}

const headersOf = ({ id, number, eventId }: Attempt, { type, source }: Payload, signature: string) => [
  'content-type',
  'application/json',
  'user-agent',
  'svc-webhooks/1.0',
  'accept-encoding',
  'identity',
  'X-Svc-Source',
  source,
  'X-Svc-Event',
  type,
  'X-Svc-Event-Id',
  headerText(eventId),
  'X-Svc-Delivery-Id',
  id,
  'X-Svc-Attempt',
  String(number),
  'X-Svc-Signature',
  signature,
  'X-Svc-Signature-256',
  signature,
]

/** Ids of the upstream are printable ASCII; another one must not break the header. */
const headerText = (text: string) => (/^[!-~]*$/.test(text) ? text : encodeURIComponent(text))

const lineOf = ({ organizationId, laneId, id, number, payload, isProbe }: Attempt, outcome: Outcome) => ({
  organization: organizationId,
  subscription: laneId,
  delivery: id,
  attempt: number,
  event: payload?.type,
  trace: traceIdOf(payload?.trace ?? undefined),
  outcome: outcome.kind,
  isProbe,
  status: outcome.attempt.status,
  error: outcome.attempt.error?.code,
  ours: outcome.kind === 'wait' ? outcome.ours : undefined,
  durationMs: outcome.attempt.durationMs,
})
