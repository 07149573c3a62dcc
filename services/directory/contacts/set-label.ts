import type { TransactionSql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'
import { factColumns, type Facts, recordUpdated } from './contact-events.ts'
import type { Origin } from './identity-updated.ts'

/** The contacts of a number, or, when a label is deleted, of all the organization's. */
type Scope = Pick<Origin, 'organizationId'> & Partial<Pick<Origin, 'phoneNumberId' | 'traceparent'>>

interface LabelChange {
  labelId: string
  operation: 'attach' | 'detach'
}

/**
 * Attaches a label to contacts or detaches it, and tells of those that really changed. They are locked (`lockContacts`),
 * and the label that is attached is held (`holdLabel`).
 */
export async function setLabel(tx: TransactionSql, origin: Scope, change: LabelChange, ids: string[]): Promise<void> {
  const { organizationId } = origin
  const changedIds = await (change.operation === 'attach' ? attach : detach)(tx, organizationId, change.labelId, ids)
  if (changedIds.length === 0) return
  const contacts = await tx<Facts[]>`
    update contacts set updated_at = greatest(updated_at, clock_timestamp())
    where organization_id = ${organizationId} and id = any(${changedIds}::text[]) and deleted_at is null
    returning ${factColumns(tx)}
  `
  await recordUpdated(tx, contacts.toSorted(byId), ['labels'], origin)
}

const byId = (a: Facts, b: Facts) => (a.id < b.id ? -1 : 1)

/** Those of the contacts that are there, locked in the order of their keys, as whoever locks more than one does. */
export async function lockContacts(
  tx: TransactionSql,
  { organizationId, phoneNumberId }: Scope,
  contactIds: string[],
): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`
    select c.id from ${each(tx, contactIds.toSorted())} u(id)
    cross join lateral (
      select id from contacts
      where organization_id = ${organizationId} and id = u.id and deleted_at is null
        ${phoneNumberId === undefined ? tx`` : tx`and phone_number_id = ${phoneNumberId}`}
      limit 1 for no key update
    ) c
  `
  return rows.map(({ id }) => id)
}

async function attach(tx: TransactionSql, organizationId: string, labelId: string, ids: string[]) {
  const rows = await tx<{ contactId: string }[]>`
    insert into contact_labels (organization_id, contact_id, label_id, phone_number_id)
    select c.organization_id, c.id, ${labelId}, c.phone_number_id from contacts c
    where c.organization_id = ${organizationId} and c.id = any(${ids}::text[])
    on conflict do nothing
    returning contact_id
  `
  return rows.map(({ contactId }) => contactId)
}

async function detach(tx: TransactionSql, organizationId: string, labelId: string, ids: string[]) {
  const rows = await tx<{ contactId: string }[]>`
    delete from contact_labels
    where organization_id = ${organizationId} and contact_id = any(${ids}::text[]) and label_id = ${labelId}
    returning contact_id
  `
  return rows.map(({ contactId }) => contactId)
}
