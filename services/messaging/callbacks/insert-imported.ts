import type { Parties } from '@app/shared/contracts/directory.ts'
import type { TransactionSql } from '@app/shared/database.ts'
import { timeOf } from '@app/shared/ids.ts'
import type { z } from 'zod'
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
}

/** Inserts those whose platform id is not known yet; answers their ids. */
export async function insertImported(tx: TransactionSql, messages: ImportedMessage[]): Promise<Set<string>> {
  if (messages.length === 0) return new Set()
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
    created_at: timeOf(message.id).toISOString(),
  }))
  const fresh = await tx<{ id: string }[]>`
    insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, recipient,
      content, unsupported, body, parties, context_id, source, status, rank, upstream_id, request_id, created_at)
    select organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, recipient,
      content, unsupported, body, parties, context_id, source, status, rank, upstream_id, '', created_at
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as m(organization_id text, phone_number_id text, id text,
      conversation_id text, contact_id text, direction text, type text, recipient text, content text, unsupported text,
      body jsonb, parties jsonb, context_id text, source text, status text, rank smallint, upstream_id text,
      created_at timestamptz)
    order by organization_id, upstream_id
    on conflict (organization_id, upstream_id) where upstream_id is not null do nothing
    returning id
  `
  return new Set(fresh.map(({ id }) => id))
}
