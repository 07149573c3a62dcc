import type { Message } from '@app/shared/contracts/messaging.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { z } from 'zod'
import type { ShownFile } from '../media/media.ts'

/** Why a message failed. The release before kept neither `failed_at` nor `by`. */
export interface StoredError {
  code: string
  message: string
  provider_code: number | null
  failed_at?: string
  /** Ourselves, the platform's answer to an attempt, or a callback of it. */
  by?: 'us' | 'answer' | 'callback'
}

export interface MessageRow {
  id: string
  conversationId: string
  recipient: string | null
  direction: 'inbound' | 'outbound'
  type: string
  content: string | null
  status: 'queued' | 'sent' | 'delivered' | 'read' | 'failed'
  upstreamId: string | null
  error: StoredError | null
  unsupported: string | null
  playedAt: Date | null
  mediaId: string | null
  createdAt: Date
}

export const messageColumns = (sql: Sql) => sql`
  id, conversation_id, recipient, direction, type, content, status, upstream_id, error, unsupported, played_at, media_id,
  created_at
`

interface OfConversation {
  organizationId: string
  phoneNumberId: string
  conversationId: string
  direction?: string | undefined
  status?: string | undefined
}

/**
 * Messages of a conversation, by its index. The other columns are compared as one array, which no index knows. Otherwise Postgres may
 * expect all that a number has, or has unread, to be fewer rows, and read those instead.
 */
export const isOfConversation = (sql: Sql | TransactionSql, of: OfConversation): Fragment => sql`
  conversation_id = ${of.conversationId} and array[organization_id, phone_number_id, direction, status]
    = array[${of.organizationId}, ${of.phoneNumberId}, ${of.direction ?? sql`direction`}, ${of.status ?? sql`status`}]
`

/** A queued message shows as `pending`. `file`: the one that the row's `mediaId` names. */
export const toMessage = (row: MessageRow, file: ShownFile | undefined): z.input<typeof Message> => ({
  id: row.id,
  object: 'message',
  conversation_id: row.conversationId,
  to: row.recipient,
  direction: row.direction,
  type: row.type,
  content: row.content,
  media_url: file?.url ?? null,
  ...(file && { media_status: file.status }),
  status: row.status === 'queued' ? 'pending' : row.status,
  created_at: row.createdAt.toISOString(),
  ...(row.upstreamId !== null && { message_id: row.upstreamId }),
  ...(row.error && { error: toError(row.error) }),
  ...(row.unsupported !== null && { unsupported: { type: row.unsupported } }),
  ...(row.playedAt && { played_at: row.playedAt.toISOString() }),
})

const toError = ({ code, message, provider_code }: StoredError) => ({ code, message, provider_code })
