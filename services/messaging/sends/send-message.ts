import { call } from '@app/shared/ask.ts'
import type { Caller, Handler, WholeAnswer } from '@app/shared/contract.ts'
import { openConversation } from '@app/shared/contracts/directory.ts'
import { sendMessage as contract } from '@app/shared/contracts/messaging.ts'
import { envelopeOf } from '@app/shared/envelope.ts'
import { storedAnswer } from '@app/shared/idempotency.ts'
import { newId, timeOf } from '@app/shared/ids.ts'
import { Problem } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import type { KnownConversation } from './known-conversations.ts'
import { recipientOf } from './recipient.ts'

/**
 * Accepts a send: guards first, so that a refused one leaves nothing behind; then key, message and lane in one statement.
 * A key that was used is looked up when a guard refuses too: a retry gets its answer even when the window has closed since.
 */
export const sendMessage: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { phone_number_id: phoneNumberId } = params
  const recipient = recipientOf(body.to)
  try {
    const known =
      app.known.findOpen(phoneNumberId, recipient) ?? (await askDirectory(app, phoneNumberId, recipient, caller))
    return await accept(app, phoneNumberId, recipient, body, known, caller)
  } catch (err) {
    if (!(err instanceof Problem) || err.status >= 500) throw err
    const replay = await storedAnswer(app.sql, app.sealKeys, caller)
    if (replay) return replay
    throw err
  }
}

/** A number that may not send is refused before directory makes anything for it. */
async function refuseNumber(app: App, phoneNumberId: string, { organizationId }: Caller) {
  const refusal = await app.refusalOf({ organizationId, phoneNumberId })
  if (refusal !== null) throw new Problem(refusal)
}

async function askDirectory(app: App, phoneNumberId: string, recipient: string, caller: Caller) {
  await refuseNumber(app, phoneNumberId, caller)
  const answer = await call(
    app,
    openConversation,
    {
      params: { phone_number_id: phoneNumberId },
      body: {
        recipient: recipient.startsWith('+') ? { phone_number: recipient } : { bsuid: recipient },
        window: 'open',
        marketing: false,
      },
    },
    caller,
  )
  const { conversation, contact, window_until: windowUntil } = answer
  const known = { parties: { conversation, contact }, windowUntilMs: windowUntil ? Date.parse(windowUntil) : 0 }
  app.known.remember(phoneNumberId, recipient, known)
  return known
}

type Body = Parameters<typeof sendMessage>[1]['body']

async function accept(
  app: App,
  phoneNumberId: string,
  recipient: string,
  body: Body,
  { parties }: KnownConversation,
  caller: Caller,
): Promise<WholeAnswer> {
  const id = newId('msg')
  const createdAt = timeOf(id).toISOString()
  const answer = envelopeOf(
    contract,
    {
      id,
      object: 'message',
      to: recipient,
      type: body.type,
      status: 'queued',
      created_at: createdAt,
      conversation_id: parties.conversation.id,
    },
    caller.requestId,
  )
  const verdict = await app.acceptSend({
    id,
    organization_id: caller.organizationId,
    phone_number_id: phoneNumberId,
    conversation_id: parties.conversation.id,
    contact_id: parties.contact.id,
    type: body.type,
    recipient,
    content: body.text.body,
    body: body.text,
    parties,
    context_id: body.context?.message_id ?? null,
    request_id: caller.requestId,
    traceparent: caller.traceparent,
    created_at: createdAt,
    key: caller.idempotency?.key ?? null,
    fingerprint: caller.idempotency?.fingerprint ?? null,
    answer: caller.idempotency ? answer.toString() : null,
  })
  if (verdict === 'accepted') {
    app.dispatcher.wake()
    return { whole: true, status: 200, body: answer, replayed: false }
  }
  if (verdict !== 'key_taken') throw new Problem(verdict)
  const replay = await storedAnswer(app.sql, app.sealKeys, caller)
  return replay ?? accept(app, phoneNumberId, recipient, body, { parties, windowUntilMs: 0 }, caller)
}
