import type { Parties } from '@app/shared/contracts/directory.ts'
import { messageSent } from '@app/shared/contracts/messaging.ts'
import { type Recorded, recorded } from '@app/shared/events/events.ts'
import type { z } from 'zod'
import { type MediaWays, urlOf } from '../media/media.ts'

/** Where stored files are found. */
export type FileAddresses = Pick<MediaWays, 'publicUrl'>

/** What the event `message.sent` needs of a message and its sender. */
export interface SentMessageRow {
  organizationId: string
  phoneNumberId: string
  id: string
  type: string
  recipient: string | null
  content: string | null
  parties: z.output<typeof Parties>
  contextId: string | null
  /** Of the address of its file, if it has one of ours. */
  mediaOpaque: string | null
  source: string
  traceparent: string
  senderPhone: string | null
  businessAccountId: string
}

/**
 * `message.sent`, once a message: recorded by whoever first writes the platform's id, be it the call's outcome or a
 * callback. `waId`, in digits, is how the platform writes the recipient, if it told: directory learns it where it differs.
 */
export function messageSentEvent(
  message: SentMessageRow,
  upstreamId: string,
  at: Date,
  { media, waId = null }: { media: FileAddresses; waId?: string | null },
): Recorded {
  const { conversation, contact } = message.parties
  return recorded(
    messageSent,
    {
      session: message.phoneNumberId,
      direction: 'outbound',
      from_me: true,
      timestamp: at.toISOString(),
      message: {
        id: message.id,
        provider_id: upstreamId,
        type: message.type,
        body: message.content,
        from: message.senderPhone,
        to: message.recipient,
        status: 'sent',
        source: message.source === 'app' ? 'app' : 'api',
        reply_to_provider_id: message.contextId,
        ...fileOf(message, media),
      },
      conversation: { id: conversation.id, status: conversation.status },
      contact,
      meta: {
        phone_number_id: message.phoneNumberId,
        display_phone_number: message.senderPhone,
        provider: 'chat',
      },
    },
    {
      organizationId: message.organizationId,
      id: `${message.id}:sent`,
      phoneNumberId: message.phoneNumberId,
      traceparent: message.traceparent,
      recipient:
        waId !== null && message.recipient?.startsWith('+') && message.recipient !== `+${waId}` ? waId : undefined,
    },
  )
}

const fileTypes = new Set(['image', 'video', 'document', 'audio'])

function fileOf({ type, content, mediaOpaque }: SentMessageRow, media: FileAddresses) {
  if (!fileTypes.has(type)) return {}
  const url = mediaOpaque === null ? null : urlOf(media, mediaOpaque)
  return {
    media_url: url,
    media_status: url === null ? ('unavailable' as const) : ('ready' as const),
    [type]: { link: url, caption: content },
  }
}
