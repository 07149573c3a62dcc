import { messageStatusReported } from '@app/shared/contracts/messaging.ts'
import { type Recorded, recorded } from '@app/shared/events/events.ts'
import { ourEnvelope } from '../upstream/words.ts'
import type { SentMessageRow } from './message-sent.ts'

/** Why a message failed. `providerCode` is the platform's, null when the failure is ours. */
export interface MessageFailure {
  code: string
  message: string
  providerCode: number | null
  /** The platform's refusal bears on the state of the account. */
  reportsAccount?: boolean
  /** When the platform was asked, where that was not the attempt. */
  askedAt?: Date | undefined
}

/** Our own reasons, in words. */
export const reasons: Record<string, string> = {
  delivery_unknown: 'Nobody can tell whether the platform accepted the message; it was not sent again.',
  expired: 'The message could not be attempted within its time to live.',
  customer_suspended: 'The customer that owns the number is suspended or archived.',
  account_not_connected: 'The number is not connected.',
  account_restricted: 'The platform restricts sends from this number.',
  subscription_inactive: 'The subscription of the organization is not active.',
  feature_not_entitled: 'The organization is not entitled to this feature.',
}

/** The synthesized `message.status` of a message that failed before it was delivered: the platform's envelope, our message id. */
export function messageFailedEvent(message: SentMessageRow, failure: MessageFailure, at: Date): Recorded {
  const error = {
    code: failure.providerCode ?? -1,
    title: failure.code,
    message: failure.message,
    error_data: { details: failure.message },
  }
  const status = {
    id: message.id,
    status: 'failed',
    timestamp: String(Math.floor(at.getTime() / 1000)),
    ...recipientOf(message),
    errors: [error],
  }
  const value = {
    messaging_product: 'chat',
    metadata: {
      display_phone_number: message.senderPhone?.replace(/^\+/, '') ?? null,
      phone_number_id: message.phoneNumberId,
    },
    statuses: [status],
  }
  return recorded(
    messageStatusReported,
    { object: ourEnvelope, entry: [{ id: message.businessAccountId, changes: [{ field: 'messages', value }] }] },
    {
      organizationId: message.organizationId,
      id: `${message.id}:failed`,
      phoneNumberId: message.phoneNumberId,
      traceparent: message.traceparent,
    },
  )
}

/** A user id is no number: the platform has a field of its own for it. */
const recipientOf = ({ recipient }: SentMessageRow) =>
  recipient === null || recipient.startsWith('+')
    ? { recipient_id: recipient?.slice(1) ?? '' }
    : { recipient_user_id: recipient }
