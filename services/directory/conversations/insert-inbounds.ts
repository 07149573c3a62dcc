import type { Parties, recordInbound } from '@app/shared/contracts/directory.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { z } from 'zod'

type ConversationStatus = z.infer<typeof Parties>['conversation']['status']

/** An inbound message, and the contact and conversation that it was found to belong to. */
export interface Inbound {
  organizationId: string
  phoneNumberId: string
  upstreamId: string
  sentAt: Date
  countsUnread: boolean
  conversationId: string
  contact: { id: string; phoneNumber: string | null; name: string | null }
}

/** What was answered when a message was recorded. */
export interface InboundRow {
  conversationId: string
  status: ConversationStatus
  assignedTo: string | null
  contactId: string
  contactPhoneNumber: string | null
  contactName: string | null
  windowUntil: Date
  labels: { id: string; name: string; color: string }[]
}

export interface RecordedInbound extends InboundRow {
  /** Its conversation was resolved. */
  isReopening: boolean
}

export const toRecorded = (row: InboundRow): z.input<(typeof recordInbound)['answer']> => ({
  conversation: { id: row.conversationId, status: row.status, assigned_to: row.assignedTo },
  contact: { id: row.contactId, phone_number: row.contactPhoneNumber, name: row.contactName },
  window_until: row.windowUntil.toISOString(),
  labels: row.labels,
})

/**
 * Records messages with what they do to their conversations: reopened when resolved, unread counted, times only forward.
 * Null for a message that was recorded before, whose conversation is another contact's by now, or whose contact is gone: look again.
 * A time in the future counts as now: it would stay the newest for ever.
 *
 * Conversations are locked in the order of their keys, so that no two batches wait for each other. Whoever deletes a contact
 * locks its conversations too: it is looked at when they are locked, and with a lock, which alone sees what was committed since
 * the statement began. One that is just being changed is skipped and counts as there: a deletion has yet to wait for this.
 */
export async function insertInbounds(sql: Sql, inbounds: Inbound[]): Promise<(RecordedInbound | null)[]> {
  const rows = await sql<(RecordedInbound & { n: number })[]>`
    with asked as (
      select * from json_to_recordset(${JSON.stringify(inbounds.map(toRecord))}::text::json) as u(
        n int, organization_id text, phone_number_id text, upstream_id text, sent_at timestamptz(3), counts_unread boolean,
        conversation_id text, contact_id text, contact_phone_number text, contact_name text)
    ), locked as (
      select v.organization_id, v.id, u.contact_id, v.status, v.assigned_to, v.last_inbound_at
      from (
        select distinct organization_id, conversation_id, contact_id from asked order by organization_id, conversation_id
      ) u
      cross join lateral (
        select organization_id, id, status, assigned_to, last_inbound_at from conversations
        where organization_id = u.organization_id and id = u.conversation_id and contact_id = u.contact_id
          and merged_into is null
        limit 1 for no key update
      ) v
      left join lateral (
        select deleted_at from contacts where organization_id = v.organization_id and id = u.contact_id
        limit 1 for share skip locked
      ) c on true
      where c.deleted_at is null
    ), mine as (
      select distinct on (u.organization_id, u.phone_number_id, u.upstream_id)
        u.*, least(u.sent_at, now())::timestamptz(3) as at, v.status, v.assigned_to, v.last_inbound_at
      from asked u join locked v on (v.organization_id, v.id, v.contact_id) = (u.organization_id, u.conversation_id, u.contact_id)
      order by u.organization_id, u.phone_number_id, u.upstream_id, u.n
    ), fresh as (
      insert into inbounds (organization_id, phone_number_id, upstream_id, conversation_id, status, assigned_to,
        contact_id, contact_phone_number, contact_name, window_until, labels)
      select m.organization_id, m.phone_number_id, m.upstream_id, m.conversation_id,
        case m.status when 'resolved' then 'open' else m.status end, m.assigned_to,
        m.contact_id, m.contact_phone_number, m.contact_name,
        greatest(m.last_inbound_at, m.at) + interval '24 hours', ${labels(sql)}
      from mine m
      order by m.organization_id, m.phone_number_id, m.upstream_id
      on conflict do nothing
      returning organization_id, phone_number_id, upstream_id, conversation_id, status, assigned_to, contact_id,
        contact_phone_number, contact_name, window_until, labels
    ), moved as (
      update conversations v set
        status = case v.status when 'resolved' then 'open' else v.status end,
        unread_count = v.unread_count + g.unread,
        last_inbound_at = greatest(v.last_inbound_at, g.newest), last_message_at = greatest(v.last_message_at, g.newest),
        own_inbound_at = case when v.own_inbound_at is not null then greatest(v.own_inbound_at, g.newest) end,
        updated_at = greatest(v.updated_at, now())
      from (
        select organization_id, conversation_id, max(m.at) as newest, count(*) filter (where m.counts_unread) as unread
        from mine m where ${isFresh(sql)}
        group by organization_id, conversation_id
      ) g
      where v.organization_id = g.organization_id and v.id = g.conversation_id
    )
    select u.n, f.conversation_id, f.status, f.assigned_to, f.contact_id, f.contact_phone_number, f.contact_name,
      f.window_until, f.labels, f.conversation_id = any(array(select id from locked where status = 'resolved')) as is_reopening
    from asked u join fresh f using (organization_id, phone_number_id, upstream_id)
  `
  const byNumber = new Map(rows.map(({ n, ...row }) => [n, row]))
  return inbounds.map((_, n) => byNumber.get(n) ?? null)
}

/** Said so that it is looked up in a hash: the planner expects one row, and would compare all with all. */
const isFresh = (sql: Sql) => sql`
  ((organization_id, phone_number_id, upstream_id) in (select organization_id, phone_number_id, upstream_id from fresh)) is true
`

/** The contact's labels and the conversation's, of a message m: the oldest, since thousands would make its event too large to be told. */
const labels = (sql: Sql) => sql`
  coalesce((
    select jsonb_agg(jsonb_build_object('id', attached.label_id, 'name', l.name, 'color', l.color) order by attached.label_id)
    from (
      select label_id from contact_labels
      where organization_id = m.organization_id and contact_id = m.contact_id
      union
      select label_id from conversation_labels
      where organization_id = m.organization_id and conversation_id = m.conversation_id
      order by label_id limit 500
    ) attached
    cross join lateral (
      select name, color from labels
      where organization_id = m.organization_id and id = attached.label_id and deleted_at is null
      limit 1
    ) l
  ), '[]')
`

const toRecord = (inbound: Inbound, n: number) => ({
  n,
  organization_id: inbound.organizationId,
  phone_number_id: inbound.phoneNumberId,
  upstream_id: inbound.upstreamId,
  sent_at: inbound.sentAt,
  counts_unread: inbound.countsUnread,
  conversation_id: inbound.conversationId,
  contact_id: inbound.contact.id,
  contact_phone_number: inbound.contact.phoneNumber,
  contact_name: inbound.contact.name,
})

/** Forgets messages after 8 days, 5,000 at a time; answers how many. */
export async function sweepInbounds(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from inbounds where (organization_id, phone_number_id, upstream_id) in (
      select organization_id, phone_number_id, upstream_id from inbounds
      where recorded_at < now() - interval '8 days' limit 5000
    )
  `
  return count
}
