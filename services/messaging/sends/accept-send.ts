import { randomInt } from 'node:crypto'
import { batched } from '@app/shared/work/batched.ts'
import { isDatabaseAway, isUndone } from '@app/shared/database/database.ts'
import { refuseRunning } from '@app/shared/idempotency/idempotency.ts'
import type { Begun, Mailbox } from '@app/shared/mailbox/mailbox.ts'
import type { FailureName } from '@app/shared/api/problem.ts'
import { nextTurn } from '@app/shared/work/soon.ts'
import type { Core } from '../app.ts'
import { type AcceptableSend, type Inserted, insertSends } from './insert-sends.ts'
import { letGo } from './let-go.ts'
import type { OpenSend } from './open-send.ts'
import { burstMs, leaseMs } from './pace.ts'

/** `key_taken`: the stored answer decides. Anything else is why the number may not send. */
export type Verdict = 'accepted' | 'key_taken' | FailureName

/**
 * Accepts sends in natural batches, in one statement each: idempotency key, message, open send and lane, or none of them.
 * One batch at a time, so that sends of a conversation are numbered as they were accepted. What may begin at once begins in
 * the same statement and goes straight to the dispatcher; the rest waits for its claim.
 */
export function acceptSends(core: Pick<Core, 'sql' | 'log'>, dispatcher: Mailbox<OpenSend>) {
  const run = batched<AcceptableSend, Verdict>((sends) => insert(core, dispatcher, sends), {
    inFlight: 1,
    rows: 128,
    sizeOf: (send) => send.content?.length ?? 0,
    ownerOf: (send) => send.organization_id,
  })
  /** Keys on their way: a double waits for the first, since one statement cannot hold both. */
  const underWay = new Map<string, Promise<unknown>>()

  return async (send: AcceptableSend): Promise<Verdict> => {
    if (send.key === null) return run(send)
    const key = `${send.organization_id} ${send.key}`
    const first = underWay.get(key)
    if (first) {
      await first.catch(() => {})
      return 'key_taken'
    }
    const job = run(send).finally(() => underWay.delete(key))
    underWay.set(key, job)
    return job
  }
}

async function insert(
  core: Pick<Core, 'sql' | 'log'>,
  dispatcher: Mailbox<OpenSend>,
  sends: AcceptableSend[],
): Promise<Verdict[]> {
  const mayBegin = dispatcher.reserve(sends.map((send) => send.organization_id))
  const slots = mayBegin.filter(Boolean).length
  const of = { mayBegin, leaseMs, burstMs, dueFrom: dispatcher.dueFrom(), holder: randomInt(1, 2 ** 47) }
  const heldSince = performance.now()
  const begun: Begun<OpenSend>[] = []
  try {
    const inserted = await insertSends(core.sql, sends, of)
    for (const [n, send] of sends.entries()) {
      const one = inserted[n]?.begun
      if (one) begun.push({ item: openSendOf(send, one), lane: one.lane, tenant: send.organization_id, heldSince })
    }
    if (inserted.some(({ due }) => due)) dispatcher.wake()
    return inserted.map(verdictOf)
  } catch (err) {
    // It may have been committed all the same.
    if (slots > 0 && isDatabaseAway(err) && !isUndone(err))
      void letGo(core, sends, of.holder, heldSince).finally(dispatcher.wake)
    const [only] = sends
    if (sends.length === 1 && only?.key !== null && wasAtKeys(err)) refuseRunning(err)
    throw err
  } finally {
    nextTurn(() => dispatcher.adopt(slots, begun))
  }
}

/** Not at a lane or a month's count, which another send may hold: at which table a statement waited, Postgres tells in words alone. */
const wasAtKeys = (err: unknown) => err instanceof Error && 'where' in err && /\bkeys\b/.test(String(err.where))

function verdictOf({ known, refusal, accepted }: Inserted): Verdict {
  if (!known) return 'resource_not_found'
  return refusal ?? (accepted ? 'accepted' : 'key_taken')
}

/** As the dispatcher would read it from the tables. */
function openSendOf(send: AcceptableSend, { seq, at, sender }: NonNullable<Inserted['begun']>): OpenSend {
  return {
    laneId: send.conversation_id,
    seq,
    step: 'send',
    attempts: 1,
    begunAt: at,
    parkedMs: 0,
    body: send.body,
    media: null,
    upstreamMediaId: null,
    refusal: null,
    accountId: sender.accountId,
    sealedToken: sender.sealedToken,
    resendUnknown: sender.resendUnknown,
    relaxed: sender.relaxed,
    organizationId: send.organization_id,
    phoneNumberId: send.phone_number_id,
    id: send.id,
    type: send.type,
    recipient: send.recipient,
    content: send.content,
    parties: send.parties,
    contextId: send.context_id,
    mediaOpaque: null,
    source: 'api',
    traceparent: send.traceparent,
    senderPhone: sender.phoneNumber,
    businessAccountId: sender.businessAccountId,
  }
}
