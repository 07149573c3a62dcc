import { waId } from '@app/shared/contracts/fields.ts'
import { isUnknownObject, jsonOf, refusalIn } from '@app/shared/outside/upstream-exchange.ts'
import { postOnce } from '@app/shared/outside/post-once.ts'
import { callerHeaders, type Upstream } from '@app/shared/outside/upstream.ts'
import { z } from 'zod'
import { platformId } from './platform-id.ts'
import { theirProduct } from './words.ts'

/** From the wait for a connection to the answer's last byte. */
const sendTimeoutMs = 20_000

export interface OutgoingMessage {
  phoneNumberId: string
  token: string
  /** Our `msg_` id, which comes back in the statuses. */
  messageId: string
  /** `+E164`, or a bsuid. */
  recipient: string
  type: string
  /** The type's block. */
  body: unknown
  contextId: string | null
  /** Whether it may still begin, when there is a connection. */
  mayBegin: () => boolean
}

export interface Refused {
  code: number
  message: string
  details: string
  isUnknownNumber: boolean
  mayPass: boolean
}

/** What one call came to. Unknown: it may have been accepted, and nobody can tell. */
export type SendResult =
  | { kind: 'accepted'; upstreamId: string; waId: string | null; httpStatus: number }
  | (Refused & { kind: 'refused'; httpStatus: number })
  | { kind: 'unreachable'; details: string }
  | { kind: 'unknown'; details: string; httpStatus: number | null }

const Accepted = z.object({
  messages: z.tuple([z.object({ id: platformId })], z.unknown()),
  /** How the platform writes the recipient's number, which may differ from the one that was given. */
  contacts: z
    .array(
      z.looseObject({
        wa_id: waId.optional(),
      }),
    )
    .catch([])
    .default([]),
})

/** Sends a message to the platform. Never throws: whatever happens is a result. */
export async function send(upstream: Upstream, message: OutgoingMessage): Promise<SendResult> {
  const { hasBegun, head, body, err } = await postOnce(upstream.sending, {
    url: upstream.urlOf(`/${message.phoneNumberId}/messages`, message.token),
    headers: { ...callerHeaders(message.token), 'content-type': 'application/json' },
    body: JSON.stringify(payloadOf(message)),
    timeoutMs: sendTimeoutMs,
    mayBegin: message.mayBegin,
  })
  if (head && err === undefined) return read(head.status, body.toString())
  const details = describe(err)
  return hasBegun ? { kind: 'unknown', details, httpStatus: null } : { kind: 'unreachable', details }
}

function payloadOf({ messageId, recipient, type, body, contextId }: OutgoingMessage) {
  return {
    messaging_product: theirProduct,
    recipient_type: 'individual',
    ...(recipient.startsWith('+') ? { to: recipient } : { recipient }),
    type,
    ...(contextId !== null && { context: { message_id: contextId } }),
    biz_opaque_callback_data: messageId,
    [type]: body,
  }
}

/** An error body in the platform's own shape is its word that it did not accept; nothing else is. */
function read(httpStatus: number, text: string): SendResult {
  const value = jsonOf(text)
  const refusal = refusalIn(value)
  if (refusal) {
    const { code, message, details, mayPass } = refusal
    return { kind: 'refused', code, message, details, isUnknownNumber: isUnknownObject(refusal), mayPass, httpStatus }
  }
  const accepted = Accepted.safeParse(value)
  if (httpStatus < 300 && accepted.success) {
    const { messages, contacts } = accepted.data
    return { kind: 'accepted', upstreamId: messages[0].id, waId: contacts[0]?.wa_id ?? null, httpStatus }
  }
  return { kind: 'unknown', details: `an answer ${httpStatus} that is not the platform's`, httpStatus }
}

function describe(err: unknown): string {
  if (err instanceof AggregateError && err.errors.length > 0) return describe(err.errors[0])
  return err instanceof Error ? ('code' in err ? `${String(err.code)}: ${err.message}` : err.message) : String(err)
}
