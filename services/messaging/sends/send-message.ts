import { call } from '@app/shared/bus/ask.ts'
import type { Caller, Handler, WholeAnswer } from '@app/shared/api/contract.ts'
import { openConversation } from '@app/shared/contracts/directory.ts'
import { sendMessage as contract } from '@app/shared/contracts/messaging.ts'
import { envelopeOf } from '@app/shared/api/envelope.ts'
import { storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { sendReadReceipt } from '../messages/send-read-receipt.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import { type Draft, draftOf, type SendBody } from './draft.ts'
import type { KnownConversation } from './known-conversations.ts'
import { prepareFile, type PreparedFile } from './prepare-file.ts'
import { resolveTemplate } from '../templates/resolve-template.ts'
import { recipientOf } from './recipient.ts'

/** One endpoint, two operations: a body with `status` is a read receipt. */
export const sendMessage: Handler<App, typeof contract> = (app, { params, body }, caller) => {
  const { phone_number_id: phoneNumberId } = params
  return 'status' in body
    ? sendReadReceipt(app, phoneNumberId, body, caller)
    : acceptMessage(app, phoneNumberId, body, caller)
}

/** A send as it was asked for. */
interface Wanted {
  number: OwnNumber
  body: SendBody
  recipient: string
  draft: Draft
}

/** A send whose guards have passed. */
interface Ready {
  phoneNumberId: string
  body: SendBody
  recipient: string
  content: string | null
  file: PreparedFile
  parties: KnownConversation['parties']
}

/**
 * Accepts a send: guards first, so that a refused one leaves nothing behind; then key, message and lane in one statement.
 * A key that was used is looked up before anybody is asked, and when a guard refuses: a retry gets its answer though directory
 * or the platform is away, or the window has closed since.
 */
async function acceptMessage(app: App, phoneNumberId: string, body: SendBody, caller: Caller): Promise<WholeAnswer> {
  const number = { organizationId: caller.organizationId, phoneNumberId }
  try {
    const wanted = { number, body, recipient: recipientOf(body.to), draft: draftOf(body) }
    const ready = readyAtOnce(app, wanted)
    const stored = ready ? null : await storedAnswer(app.sql, app.sealKeys, caller)
    if (stored) return stored
    return await accept(app, ready ?? (await prepare(app, wanted, caller)), caller)
  } catch (err) {
    if (!(err instanceof Problem) || err.status >= 500) throw err
    const replay = await storedAnswer(app.sql, app.sealKeys, caller)
    if (replay) return replay
    throw err
  }
}

/** A send about which nobody has to be asked: it takes one statement. */
function readyAtOnce(app: App, wanted: Wanted): Ready | null {
  if (!isPlain(wanted)) return null
  const known = app.known.find(wanted.number, wanted.recipient, 'open')
  return known ? plainSend(wanted, known) : null
}

/** Neither a template nor a message with a file. */
const isPlain = ({ body, draft }: Wanted) => body.type !== 'template' && draft.slot === null

const plainSend = ({ number, body, recipient, draft }: Wanted, { parties }: KnownConversation): Ready => ({
  phoneNumberId: number.phoneNumberId,
  body,
  recipient,
  content: draft.content,
  file: { block: draft.block, media: null },
  parties,
})

/** Asks everything that may refuse the send; what makes something (the conversation with a new contact) comes last. */
async function prepare(app: App, wanted: Wanted, caller: Caller): Promise<Ready> {
  const { number, body, recipient, draft } = wanted
  if (isPlain(wanted)) {
    return plainSend(wanted, await askDirectory(app, number, recipient, { marketing: false, window: 'open' }, caller))
  }
  await refuseNumber(app, number)
  const template = body.type === 'template' ? await resolveTemplate(app, number, body.template, caller) : null
  const file = await prepareFile(app, number, body.type, draft, caller.deadline)
  const marketing = template?.category === 'MARKETING'
  const window = template === null ? 'open' : 'any'
  const known = marketing ? undefined : app.known.find(number, recipient, window)
  const { parties } = known ?? (await askDirectory(app, number, recipient, { marketing, window }, caller))
  const content = template?.content ?? draft.content
  return { phoneNumberId: number.phoneNumberId, body, recipient, content, file, parties }
}

/** A number that may not send is refused before anything is fetched, asked or made for it. */
async function refuseNumber(app: App, number: OwnNumber) {
  const refusal = await app.refusalOf(number)
  if (refusal !== null) throw new Problem(refusal)
}

interface Rules {
  marketing: boolean
  window: 'open' | 'any'
}

async function askDirectory(app: App, number: OwnNumber, recipient: string, rules: Rules, caller: Caller) {
  await refuseNumber(app, number)
  const { phoneNumberId } = number
  const askedAt = performance.now()
  const answer = await call(
    app,
    openConversation,
    {
      params: { phone_number_id: phoneNumberId },
      body: {
        recipient: recipient.startsWith('+') ? { phone_number: recipient } : { bsuid: recipient },
        ...rules,
      },
    },
    caller,
  )
  const { conversation, contact, window_until: windowUntil } = answer
  const known = { parties: { conversation, contact }, windowUntilMs: windowUntil ? Date.parse(windowUntil) : 0 }
  app.known.remember(number, recipient, known, askedAt)
  return known
}

async function accept(app: App, ready: Ready, caller: Caller): Promise<WholeAnswer> {
  const { phoneNumberId, body, recipient, parties, file } = ready
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
    content: ready.content,
    body: file.block,
    media: file.media,
    media_id: file.media?.id ?? null,
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
    app.meters.accepted.inc({ type: body.type })
    return { whole: true, status: 200, body: answer, replayed: false }
  }
  if (verdict !== 'key_taken') throw new Problem(verdict)
  const replay = await storedAnswer(app.sql, app.sealKeys, caller)
  return replay ?? accept(app, ready, caller)
}
