import { contactCreated } from '@app/shared/contracts/contacts.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { type Conditional, recorded, recording } from '@app/shared/events/events.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { type Identity, isNameless, mayHaveBeen } from './identities.ts'
import type { Origin } from './identity-updated.ts'
import type { Profile } from './sender.ts'

/** A contact to be made together with its conversation. */
export interface NewContact extends Profile, Origin {
  id: string
  /** At least one; all of them become the contact's, or it is not made. */
  identities: Identity[]
  conversationId: string
  /** False for imports, which make rows and no events. */
  isTold?: boolean
}

/** The ids of a contact and its conversation, which are minted before either is there. */
export const newContactIds = () => ({ id: newId('ctc'), conversationId: newId('cnv') })

/** What a contact has that is made without a message: no names but those given. */
export const unknownContact = { waId: null, bsuid: null, parentBsuid: null, username: null, name: null }

/** Makes contacts, each with its names, its conversation and its event; answers which were made. */
export async function insertContacts(sql: Sql | TransactionSql, contacts: NewContact[]): Promise<boolean[]> {
  try {
    const made = await insertAll(sql, contacts)
    return contacts.map(({ id }) => made.has(id))
  } catch (err) {
    // Another call took some of its names, but not all. Where there are several contacts, `batched` tries them one by one.
    if (contacts.length === 1 && isNameless(err)) return [false]
    throw err
  }
}

/** The same in the caller's transaction; answers the ids of those that were made. Null when one has lost some of its names: look again. */
export async function insertContactsWithin(tx: TransactionSql, contacts: NewContact[]): Promise<Set<string> | null> {
  try {
    return await tx.savepoint((attempt) => insertAll(attempt, contacts))
  } catch (err) {
    if (isNameless(err)) return null
    throw err
  }
}

/**
 * The primary key of the names decides who gets them. They are claimed in one order, so that no two batches deadlock. A contact that does
 * not get all of its names is not inserted; the names that it did get then break their foreign key, which undoes the statement.
 */
async function insertAll(sql: Sql | TransactionSql, contacts: NewContact[]): Promise<Set<string>> {
  const rows = await sql<{ contactId: string }[]>`
    with asked as (
      select * from json_to_recordset(${JSON.stringify(contacts.map(toRecord))}::text::json) as u(
        organization_id text, phone_number_id text, id text, phone_number text, wa_id text, bsuid text, parent_bsuid text,
        username text, name text, identities json, known_as json, conversation_id text, created_at timestamptz,
        conversation_created_at timestamptz)
    ), claimed as (
      insert into identities (organization_id, phone_number_id, kind, value, contact_id)
      select u.organization_id, u.phone_number_id, i.kind, i.value, u.id
      from asked u cross join lateral json_to_recordset(u.identities) as i(kind text, value text)
      order by u.organization_id, u.phone_number_id, i.kind, i.value, u.id
      on conflict do nothing
      returning contact_id
    ), winners as (
      select u.* from asked u left join (select contact_id, count(*) from claimed group by 1) c on c.contact_id = u.id
      where json_array_length(u.identities) = coalesce(c.count, 0)
    ), made as (
      insert into contacts (organization_id, id, phone_number_id, phone_number, wa_id, bsuid, parent_bsuid, username, name,
        marketing_preference, marketing_preference_at, created_at, updated_at)
      select organization_id, id, phone_number_id, phone_number, wa_id, bsuid, parent_bsuid, username, name,
        case when s.at is not null then 'stop' end, s.at, created_at, created_at
      from winners u
      cross join lateral (select remembered_stop(u.organization_id, u.phone_number_id, u.known_as) as at) s
    ), opened as (
      insert into conversations (organization_id, id, phone_number_id, contact_id, created_at)
      select organization_id, conversation_id, phone_number_id, id, conversation_created_at from winners
    ), told as (
      ${recording(sql, contacts.flatMap(eventOf), sql`given in (select id from winners)`)}
    )
    select id as contact_id from winners
  `
  return new Set(rows.map(({ contactId }) => contactId))
}

const toRecord = (contact: NewContact) => ({
  organization_id: contact.organizationId,
  phone_number_id: contact.phoneNumberId,
  id: contact.id,
  phone_number: contact.phoneNumber,
  wa_id: contact.waId,
  bsuid: contact.bsuid,
  parent_bsuid: contact.parentBsuid,
  username: contact.username,
  name: contact.name,
  identities: contact.identities,
  known_as: mayHaveBeen(contact),
  conversation_id: contact.conversationId,
  created_at: timeOf(contact.id),
  conversation_created_at: timeOf(contact.conversationId),
})

function eventOf(made: NewContact): Conditional[] {
  const { organizationId, phoneNumberId, id, phoneNumber, name, traceparent, isTold = true } = made
  if (!isTold) return []
  const createdAt = timeOf(id).toISOString()
  const contact = {
    id,
    object: 'contact' as const,
    phone_number: phoneNumber,
    name,
    email: null,
    metadata: null,
    phone_number_id: phoneNumberId,
    created_at: createdAt,
    updated_at: createdAt,
  }
  return [{ ...recorded(contactCreated, { contact }, { organizationId, phoneNumberId, traceparent }), given: id }]
}
