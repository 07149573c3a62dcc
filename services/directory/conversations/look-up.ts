import type { Sql } from '@app/shared/database/database.ts'
import type { Identity } from '../contacts/identities.ts'
import type { Profile } from '../contacts/sender.ts'
import type { ConversationRow } from './conversations.ts'
import type { InboundRow } from './insert-inbounds.ts'

/** Who is known by these names on a number? And was this message recorded before? */
export interface Question {
  organizationId: string
  phoneNumberId: string
  identities: Identity[]
  upstreamId?: string | undefined
}

export interface Found {
  /** Null when the number is not, or is no more, the organization's. */
  account: FoundAccount | null
  /** What was answered when the message was recorded. */
  recorded: InboundRow | null
  /** The contacts that have the names, the phone's first; more than one have to be merged. */
  contacts: FoundContact[]
}

export interface FoundAccount {
  windowCheck: 'strict' | 'upstream'
  requireMarketingConsent: boolean
}

export interface FoundContact extends Profile {
  id: string
  marketingPreference: 'stop' | 'resume' | null
  /** Whether its metadata says so. */
  marketingConsent: boolean
  /** Those of the names asked for that it has. */
  identities: Identity[]
  conversation: FoundConversation | null
}

export interface FoundConversation extends Pick<ConversationRow, 'id' | 'status' | 'assignedTo' | 'lastInboundAt'> {
  /** Whether the newest inbound message is less than 24 hours old, by the database's clock. */
  isWindowOpen: boolean
}

/** A question and one contact of its answer; all of a contact's fields are null when there is none. */
interface Row extends Profile {
  n: number
  windowCheck: FoundAccount['windowCheck'] | null
  requireMarketingConsent: boolean
  recorded: InboundRow | null
  contactId: string | null
  marketingPreference: FoundContact['marketingPreference']
  marketingConsent: boolean
  identities: Identity[]
  conversationId: string | null
  status: FoundConversation['status']
  assignedTo: string | null
  lastInboundAt: Date | null
  isWindowOpen: boolean
}

/**
 * Answers many questions, of any organizations, with one statement. `limit 1` in each step holds the planner to the keys:
 * free to join, it reads whole tables while they are small and keeps that plan while they grow (measured on a new
 * database: 600 calls a second for half a minute, against 10,000).
 */
export async function lookUp(sql: Sql, questions: Question[]): Promise<Found[]> {
  const rows = await sql<Row[]>`
    select u.n, a.window_check, a.require_marketing_consent, r.recorded,
      c.id as contact_id, c.phone_number, c.wa_id, c.bsuid, c.parent_bsuid, c.username, c.name, c.marketing_preference,
      coalesce(c.metadata -> 'marketing_consent' = 'true', false) as marketing_consent, d.identities,
      v.id as conversation_id, v.status, v.assigned_to, v.last_inbound_at,
      coalesce(v.last_inbound_at > now() - interval '24 hours', false) as is_window_open
    from json_to_recordset(${JSON.stringify(questions.map(toRecord))}::text::json) as u(
      n int, organization_id text, phone_number_id text, upstream_id text, identities json)
    left join lateral (
      select window_check, require_marketing_consent from accounts
      where organization_id = u.organization_id and phone_number_id = u.phone_number_id and attached limit 1
    ) a on true
    left join lateral (${recorded(sql)}) r on true
    left join lateral (
      select i.contact_id, json_agg(json_build_object('kind', k.kind, 'value', k.value)) as identities
      from json_to_recordset(u.identities) as k(kind text, value text)
      cross join lateral (
        select contact_id from identities
        where organization_id = u.organization_id and phone_number_id = u.phone_number_id
          and kind = k.kind and value = k.value limit 1
      ) i
      group by i.contact_id
    ) d on true
    left join lateral (
      select id, phone_number, wa_id, bsuid, parent_bsuid, username, name, marketing_preference, metadata from contacts
      where organization_id = u.organization_id and id = d.contact_id limit 1
    ) c on true
    left join lateral (
      select id, status, assigned_to, last_inbound_at from conversations
      where organization_id = u.organization_id and contact_id = d.contact_id and merged_into is null limit 1
    ) v on true
  `
  const byNumber = Map.groupBy(rows, ({ n }) => n)
  return questions.map((_, n) => toFound(byNumber.get(n) ?? []))
}

const recorded = (sql: Sql) => sql`
  select json_build_object('conversationId', conversation_id, 'status', status, 'assignedTo', assigned_to,
    'contactId', contact_id, 'contactPhoneNumber', contact_phone_number, 'contactName', contact_name,
    'windowUntil', window_until, 'labels', labels) as recorded
  from inbounds
  where organization_id = u.organization_id and phone_number_id = u.phone_number_id and upstream_id = u.upstream_id
  limit 1
`

const toRecord = ({ organizationId, phoneNumberId, identities, upstreamId }: Question, n: number) => ({
  n,
  organization_id: organizationId,
  phone_number_id: phoneNumberId,
  upstream_id: upstreamId,
  identities,
})

function toFound(rows: Row[]): Found {
  const [first] = rows
  if (!first) throw new Error('a question without a row')
  const { windowCheck, requireMarketingConsent, recorded } = first
  return {
    account: windowCheck && { windowCheck, requireMarketingConsent },
    recorded: recorded && { ...recorded, windowUntil: new Date(recorded.windowUntil) },
    contacts: rows
      .flatMap((row) => (row.contactId === null ? [] : [toFoundContact(row, row.contactId)]))
      .toSorted(byRank),
  }
}

const toFoundContact = (row: Row, id: string): FoundContact => ({
  id,
  phoneNumber: row.phoneNumber,
  waId: row.waId,
  bsuid: row.bsuid,
  parentBsuid: row.parentBsuid,
  username: row.username,
  name: row.name,
  marketingPreference: row.marketingPreference,
  marketingConsent: row.marketingConsent,
  identities: row.identities,
  conversation: row.conversationId === null ? null : { ...conversationOf(row), id: row.conversationId },
})

const conversationOf = ({ status, assignedTo, lastInboundAt, isWindowOpen }: Row) => ({
  status,
  assignedTo,
  lastInboundAt,
  isWindowOpen,
})

const ranks = { phone: 0, wa_id: 1, bsuid: 2 }
const rankOf = ({ identities }: FoundContact) => Math.min(...identities.map(({ kind }) => ranks[kind]))
const byRank = (a: FoundContact, b: FoundContact) => rankOf(a) - rankOf(b)
