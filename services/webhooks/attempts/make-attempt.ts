import type { Core } from '../app.ts'
import type { Attempt } from './open-attempts.ts'
import { type Outcome, ourFailure, outcomeOf, payloadGone } from './outcome.ts'
import type { Payload } from './payloads.ts'
import { post } from './post.ts'
import { type KeysOf, signatureOf } from './sign.ts'

/** Signs and posts. Never throws. */
export async function makeAttempt({ egress, log }: Core, attempt: Attempt, keysOf: KeysOf): Promise<Outcome> {
  const startedAtMs = Date.now()
  const startedAt = performance.now()
  const outcome = await attemptOf(attempt).catch((err: unknown) => {
    log.error({ err, delivery: attempt.id }, 'attempt')
    return ourFailure(startedAtMs)
  })
  const isGood = outcome.kind === 'succeeded'
  const level = isGood ? 'debug' : 'info'
  if (log.isLevelEnabled(level)) log[level](lineOf(attempt, outcome), 'attempt')
  return outcome

  async function attemptOf({ url, payload, secrets }: Attempt) {
    if (payload === null) return payloadGone(startedAtMs)
    const keys = keysOf(secrets)
    if (keys.length === 0) throw new Error(`${attempt.laneId} has no secret to sign with`)
    const headers = headersOf(attempt, payload, signatureOf(keys, payload.body, startedAtMs))
    const answer = await post(egress.dispatcher, { url, headers, body: payload.body })
    return outcomeOf(answer, startedAtMs, performance.now() - startedAt)
  }
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

const lineOf = ({ laneId, id, number, payload, isProbe }: Attempt, { kind, attempt }: Outcome) => ({
  subscription: laneId,
  delivery: id,
  attempt: number,
  event: payload?.type,
  outcome: kind,
  isProbe,
  status: attempt.status,
  error: attempt.error?.code,
  durationMs: attempt.durationMs,
})
