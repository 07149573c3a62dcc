import { contactCreated, contactUpdated } from '@app/shared/contracts/contacts.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { type Recorded, record, recorded } from '@app/shared/events/events.ts'
import type { z } from 'zod'
import type { ContactRow } from './contacts.ts'
import type { Origin } from './identity-updated.ts'

/** What events show of a contact: `factColumns`. */
export type Facts = Pick<
  ContactRow,
  'id' | 'phoneNumber' | 'name' | 'email' | 'metadata' | 'phoneNumberId' | 'createdAt' | 'updatedAt'
>

type ChangedField = z.output<typeof contactUpdated.data>['contact']['changed_fields'][number]

export const factColumns = (sql: Sql | TransactionSql) =>
  sql`id, phone_number, name, email, metadata, phone_number_id, created_at, updated_at`

const toFacts = (contact: Facts) => ({
  id: contact.id,
  object: 'contact' as const,
  phone_number: contact.phoneNumber,
  name: contact.name,
  email: contact.email,
  metadata: contact.metadata,
  phone_number_id: contact.phoneNumberId,
  created_at: contact.createdAt.toISOString(),
  updated_at: contact.updatedAt.toISOString(),
})

type EventOrigin = Pick<Origin, 'organizationId'> & Partial<Pick<Origin, 'traceparent'>>

export const createdEvent = (contact: Facts, { organizationId, traceparent = '' }: EventOrigin): Recorded =>
  recorded(
    contactCreated,
    { contact: toFacts(contact) },
    { organizationId, traceparent, phoneNumberId: contact.phoneNumberId },
  )

const updatedEvent = (contact: Facts, changed: ChangedField[], { organizationId, traceparent = '' }: EventOrigin) =>
  recorded(
    contactUpdated,
    { contact: { ...toFacts(contact), changed_fields: changed } },
    { organizationId, traceparent, phoneNumberId: contact.phoneNumberId },
  )

/** A statement's worth of events, so that none of them takes long: each may be 17 KiB. */
const eventsAtOnce = 200

/** Tells of each contact that these fields of it changed. */
export async function recordUpdated(
  tx: TransactionSql,
  contacts: Facts[],
  changed: ChangedField[],
  origin: EventOrigin,
): Promise<void> {
  for (let start = 0; start < contacts.length; start += eventsAtOnce) {
    const some = contacts.slice(start, start + eventsAtOnce)
    await record(
      tx,
      some.map((contact) => updatedEvent(contact, changed, origin)),
    )
  }
}
