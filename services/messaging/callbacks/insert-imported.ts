import type { Parties } from '@app/shared/contracts/directory.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { record, type Recorded } from '@app/shared/events/events.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import type { z } from 'zod'
import { beginCopies, type Copy, type PlatformFile, platformFileOf } from '../media/begin-copies.ts'
import { wasDeleted } from '../messages/deleted-messages.ts'
import type { Contents } from './contents.ts'

/** A message that neither a customer has just sent nor we: from the phone app, from before, or about a person. */
export interface ImportedMessage {
  organizationId: string
  phoneNumberId: string
  /** Minted at the platform's time. */
  id: string
  upstreamId: string
  parties: z.output<typeof Parties>
  direction: 'inbound' | 'outbound'
  contents: Contents
  /** E.164 or a bsuid for outbound. */
  recipient: string | null
  body: unknown
  contextId: string | null
  source: 'api' | 'app'
  status: 'sent' | 'delivered' | 'read' | 'failed'
  rank: number
  /** The file that it names, and the id of its copy. */
  media: NamedMedia | null
  /** What is told of it: with its file as soon as that is there. */
  event: Recorded | null
}

interface NamedMedia {
  id: string
  file: PlatformFile
}

/** The file that a message of the platform's names, under the id that its copy will have. */
export function mediaOf(part: Record<string, unknown>): NamedMedia | null {
  const file = platformFileOf(part)
  return file && { id: newId('med'), file }
}

/** Inserts those whose platform id is not known yet, with their events. */
export async function insertImported(tx: TransactionSql, messages: ImportedMessage[]): Promise<void> {
  if (messages.length === 0) return
  const rows = messages.map((message) => ({
    organization_id: message.organizationId,
    phone_number_id: message.phoneNumberId,
    id: message.id,
    conversation_id: message.parties.conversation.id,
    contact_id: message.parties.contact.id,
    direction: message.direction,
    type: message.contents.type,
    content: message.contents.content,
    unsupported: message.contents.unsupported,
    recipient: message.recipient,
    body: message.body ?? {},
    parties: message.parties,
    context_id: message.contextId,
    source: message.source,
    status: message.status,
    rank: message.rank,
    upstream_id: message.upstreamId,
    media_id: message.media?.id ?? null,
    created_at: timeOf(message.id).toISOString(),
  }))
  const fresh = await tx<{ id: string }[]>`
    insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, recipient,
      content, unsupported, body, parties, context_id, source, status, rank, upstream_id, media_id,
      request_id, created_at)
    select organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, recipient,
      content, unsupported, body, parties, context_id, source, status, rank, upstream_id, media_id, '', created_at
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as m(organization_id text, phone_number_id text, id text,
      conversation_id text, contact_id text, direction text, type text, recipient text, content text, unsupported text,
      body jsonb, parties jsonb, context_id text, source text, status text, rank smallint, upstream_id text,
      media_id text, created_at timestamptz)
    where not ${wasDeleted(tx)}
    order by organization_id, upstream_id
    on conflict (organization_id, upstream_id) where upstream_id is not null do nothing
    returning id
  `
  const ids = new Set(fresh.map(({ id }) => id))
  const made = messages.filter(({ id }) => ids.has(id))
  await record(
    tx,
    made.flatMap(({ media, event }) => (media || !event ? [] : event)),
  )
  await beginCopies(tx, made.flatMap(copyOf))
}

function copyOf({ organizationId, phoneNumberId, media, event }: ImportedMessage): Copy[] {
  return media ? [{ organizationId, phoneNumberId, mediaId: media.id, file: media.file, event }] : []
}
