import { rounded } from '@app/shared/service/log.ts'
import { sendsAtOnce } from '@app/shared/outside/upstream.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { makingRoom } from '@app/shared/database/own-session.ts'
import { type Mailbox, startMailbox } from '@app/shared/mailbox/mailbox.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import { traceIdOf } from '@app/shared/service/tracing.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'
import type { Core } from '../app.ts'
import { behaviourOf } from '../upstream/errors.ts'
import { send, type SendResult } from '../upstream/send.ts'
import { codeOfRefusal, isSentAgain, type Outcome, ourFailure, outcomeOf, unreachableOutcome } from './outcome.ts'
import { type OpenSend, takeHeads } from './open-send.ts'
import { bringFile } from './bring-file.ts'
import { withMediaId } from './draft.ts'
import { burstMs, leaseMs } from './pace.ts'
import { settleSends } from './settle-sends.ts'
import { wakeSleepers } from './wake-sleepers.ts'

/**
 * Sends what was accepted: one message of a conversation at a time, in their order, at each number's pace. The begun
 * attempt is committed before the call; an attempt found begun belongs to a holder that died, and its outcome is unknown.
 * What became of sends is recorded in the session `settling`, one batch at a time.
 */
export function startDispatcher(core: Core, settling: Sql = core.sql): Mailbox<OpenSend> {
  const tokens = mostRecent<string, string>(10_000)
  const tokenOf = ({ sealedToken, accountId }: OpenSend) => {
    const known = tokens.get(sealedToken)
    if (known !== undefined) return known
    const token = unsealToken(core.sealKeys, sealedToken, accountId)
    tokens.set(sealedToken, token)
    return token
  }
  return startMailbox<OpenSend, Outcome>(core, {
    lanes: 'send_lanes',
    leaseMs,
    slots: sendsAtOnce,
    // Under load this halves the statements: sends are told of, and their conversations go on, a little later.
    settleSpacingMs: 20,
    perGroup: 32,
    pace: { table: 'pace', burstMs },
    capacity: () => 1,
    next: takeHeads,
    work: async (item, _lane, mayBegin) => noted(core, item, await workOn(core, item, { tokenOf, mayBegin })),
    finish: (ended) => makingRoom(core.sql, () => settleSends(settling, ended, core.media)),
    settled: core.relay.wake,
    rescue: wakeSleepers,
  })
}

/** Counts what became of a send. */
function noted({ meters }: Core, { id }: OpenSend, outcome: Outcome): Outcome {
  if (outcome.kind === 'sent') {
    meters.ended.inc({ outcome: 'sent', code: '' })
    meters.delay.observe(Math.max(0, Date.now() - timeOf(id).getTime()) / 1_000)
  }
  if (outcome.kind === 'failed') meters.ended.inc({ outcome: 'failed', code: outcome.failure.code })
  if (outcome.kind === 'park') meters.parked.inc()
  return outcome
}

interface Means {
  tokenOf: (item: OpenSend) => string
  mayBegin: () => boolean
}

async function workOn(core: Core, item: OpenSend, { tokenOf, mayBegin }: Means): Promise<Outcome> {
  switch (item.step) {
    case 'known':
      return { kind: 'known' }
    case 'orphaned':
      return {
        kind: 'park',
        attempt: {
          outcome: 'unknown',
          httpStatus: null,
          upstreamCode: null,
          detail: 'the dispatcher died in the call',
        },
      }
    case 'parked':
      return { kind: 'parked', waitMs: item.parkedMs }
    case 'unknown':
      if (isSentAgain(item)) return { kind: 'again', waitMs: 0, slowNumberMs: 0, letOut: false, attempt: null }
      return ourFailure('delivery_unknown', { unknown: true })
    case 'refused':
      return ourFailure(codeOfRefusal(item.refusal ?? ''))
    case 'expired':
      return ourFailure('expired')
    case 'upload':
    case 'send': {
      const token = tokenOr(core, item, tokenOf)
      if (typeof token !== 'string') return token
      return item.step === 'upload' ? bringFile(core, item, token) : attempt(core, item, { token, mayBegin })
    }
  }
}

/** If the token does not open, the platform was surely told nothing: the send is tried again, like one that did not reach it. */
function tokenOr({ log }: Core, item: OpenSend, tokenOf: Means['tokenOf']): string | Outcome {
  try {
    return tokenOf(item)
  } catch (err) {
    log.error({ err, ...lineOf(item) }, 'the token of a number does not open')
    const detail = 'The stored token of the number does not open.'
    return unreachableOutcome(item, { outcome: 'unreachable', httpStatus: null, upstreamCode: null, detail })
  }
}

async function attempt(core: Core, item: OpenSend, { token, mayBegin }: { token: string; mayBegin: () => boolean }) {
  const startedAt = performance.now()
  // The platform is told nothing of our traces.
  const span = core.tracer?.begin('send to the platform', {
    kind: 'client',
    parent: item.traceparent,
    attributes: { organization: item.organizationId, message: item.id, attempt: item.attempts },
  })
  const result = await send(core.upstream, {
    phoneNumberId: item.phoneNumberId,
    token,
    messageId: item.id,
    recipient: item.recipient ?? '',
    type: item.type,
    body: bodyOf(item),
    contextId: item.contextId,
    mayBegin,
  })
  const durationMs = performance.now() - startedAt
  span?.end(result.kind === 'accepted' ? undefined : result.kind)
  core.meters.calls.observe({ outcome: result.kind }, durationMs / 1_000)
  if (result.kind === 'refused') core.meters.refusals.inc({ code: behaviourOf(result.code).code })
  const outcome = outcomeOf(item, result)
  const level = result.kind === 'accepted' ? 'debug' : 'warn'
  if (core.log.isLevelEnabled(level)) {
    core.log[level](
      { ...lineOf(item), durationMs: rounded(durationMs), ...wordsOf(result), next: outcome.kind },
      'attempt',
    )
  }
  return outcome
}

const lineOf = ({ organizationId, phoneNumberId, id, attempts, traceparent }: OpenSend) => ({
  organization: organizationId,
  number: phoneNumberId,
  message: id,
  attempt: attempts,
  trace: traceIdOf(traceparent),
})

/** The platform's own sentences may hold what a customer wrote: its code is enough. */
const wordsOf = (result: SendResult) => ({
  outcome: result.kind,
  code: result.kind === 'refused' ? result.code : undefined,
  status: result.kind === 'unreachable' ? undefined : result.httpStatus,
})

/** The block, with the platform's id of its file. */
const bodyOf = ({ body, media, upstreamMediaId }: OpenSend) =>
  media && upstreamMediaId !== null ? withMediaId(body, media.path, { id: upstreamMediaId }) : body
