import type { TransactionSql } from '@app/shared/database/database.ts'
import { record } from '@app/shared/events/events.ts'
import type { App } from '../app.ts'
import type { FoundContact } from '../conversations/look-up.ts'
import { mergeConversations } from '../conversations/merge-conversations.ts'
import { factColumns, type Facts, recordUpdated } from './contact-events.ts'
import { forgotten } from './forget-contacts.ts'
import { claimNames, freeNumber, haveNames, identitiesOf, mayHaveBeen } from './identities.ts'
import { identityUpdated, type Origin } from './identity-updated.ts'
import { mindStop } from './remembered-stops.ts'
import { learn, type Profile, type Sender } from './sender.ts'

type Found = Pick<FoundContact, 'id' | 'identities'>

interface Row extends Profile {
  id: string
  email: string | null
  metadata: Record<string, unknown> | null
  marketingPreference: string | null
  marketingPreferenceAt: Date | null
}

/** A message named several contacts, so they are one person. Look again, whatever came of it. */
export async function mergeContacts(app: App, sender: Sender, found: Found[], origin: Origin): Promise<void> {
  const merging = app.sql.begin((tx) => mergeWithin(tx, sender, found, origin))
  await merging.finally(() => app.tellChanged(found.map(({ id }) => id)))
  app.relay.wake()
}

/**
 * The first, the phone's, survives with all their names and conversations, and with what the others knew and it did not; the others are
 * gone. False when one of them is gone already, or has not the names any more that it was found by: look again. `learned` is what is known
 * of them from now on.
 */
export async function mergeWithin(
  tx: TransactionSql,
  sender: Sender,
  found: Found[],
  origin: Origin,
  learned = (known: Profile, lastInboundAt: Date | null) => learn(known, sender, lastInboundAt),
): Promise<boolean> {
  const ids = found.map(({ id }) => id)
  const [survivorId = '', ...goneIds] = ids
  const rows = await lockContacts(tx, origin, ids)
  const [survivor, ...others] = ids.flatMap((id) => rows.filter((row) => row.id === id))
  if (!survivor || rows.length !== ids.length || !(await haveNames(tx, origin, found))) return false
  const lastInboundAt = await mergeConversations(tx, origin, survivorId, goneIds)
  const filled = others.reduce(fill, survivor)
  const after = { ...filled, ...learned(filled, lastInboundAt) }
  await moveNames(tx, origin, survivorId, goneIds)
  const hasMoreLabels = await moveLabels(tx, origin, survivorId, goneIds)
  await tx`
    update contacts set ${forgotten(tx)}, merged_into = ${survivorId}
    where organization_id = ${origin.organizationId} and id = any(${goneIds}::text[])
  `
  const contacts = await update(tx, origin, after)
  if (filled.phoneNumber !== after.phoneNumber) await freeNumber(tx, origin, survivorId, filled.phoneNumber)
  await claimNames(tx, origin, survivorId, identitiesOf(sender))
  await mindStop(tx, survivorId, { ...origin, identities: mayHaveBeen(sender) })
  await record(tx, [identityUpdated(survivorId, survivor, after, origin)])
  const changed = (['name', 'email', 'metadata'] as const).filter((field) => survivor[field] !== after[field])
  const fields = hasMoreLabels ? [...changed, 'labels' as const] : changed
  if (fields.length > 0) await recordUpdated(tx, contacts, fields, origin)
  return true
}

/** Contacts before everything else and in the order of their keys, as whoever locks more than one does. */
const lockContacts = (tx: TransactionSql, { organizationId }: Origin, ids: string[]) => tx<Row[]>`
  select id, phone_number, wa_id, bsuid, parent_bsuid, username, name, email, metadata, marketing_preference,
    marketing_preference_at
  from contacts
  where organization_id = ${organizationId} and id = any(${ids}::text[]) and deleted_at is null
  order by id for no key update
`

/** What is empty is filled; of two words on marketing the later one holds, of two at one moment `stop`. */
function fill(into: Row, from: Row): Row {
  const later = (from.marketingPreferenceAt?.getTime() ?? 0) - (into.marketingPreferenceAt?.getTime() ?? 0)
  const isTaken = later > 0 || (later === 0 && from.marketingPreference === 'stop')
  const { marketingPreference, marketingPreferenceAt } = isTaken ? from : into
  return {
    id: into.id,
    phoneNumber: into.phoneNumber ?? from.phoneNumber,
    waId: into.waId ?? from.waId,
    bsuid: into.bsuid ?? from.bsuid,
    parentBsuid: into.parentBsuid ?? from.parentBsuid,
    username: into.username ?? from.username,
    name: into.name ?? from.name,
    email: into.email ?? from.email,
    metadata: into.metadata ?? from.metadata,
    marketingPreference,
    marketingPreferenceAt,
  }
}

const moveNames = (tx: TransactionSql, { organizationId }: Origin, survivorId: string, goneIds: string[]) => tx`
  update identities set contact_id = ${survivorId}
  where organization_id = ${organizationId} and contact_id = any(${goneIds}::text[])
`

/** True when the survivor has labels now that it had not. */
async function moveLabels(tx: TransactionSql, { organizationId }: Origin, survivorId: string, goneIds: string[]) {
  const { count } = await tx`
    insert into contact_labels (organization_id, contact_id, label_id, phone_number_id)
    select distinct a.organization_id, ${survivorId}, a.label_id, a.phone_number_id
    from contact_labels a join labels l on l.organization_id = a.organization_id and l.id = a.label_id
    where a.organization_id = ${organizationId} and a.contact_id = any(${goneIds}::text[]) and l.deleted_at is null
    on conflict do nothing
  `
  await tx`
    delete from contact_labels where organization_id = ${organizationId} and contact_id = any(${goneIds}::text[])
  `
  return count > 0
}

const update = (tx: TransactionSql, { organizationId }: Origin, contact: Row) => tx<Facts[]>`
  update contacts set phone_number = ${contact.phoneNumber}, wa_id = ${contact.waId}, bsuid = ${contact.bsuid},
    parent_bsuid = ${contact.parentBsuid}, username = ${contact.username}, name = ${contact.name},
    email = ${contact.email}, metadata = ${contact.metadata && JSON.stringify(contact.metadata)}::text::jsonb,
    marketing_preference = ${contact.marketingPreference},
    marketing_preference_at = ${contact.marketingPreferenceAt}, updated_at = greatest(updated_at, clock_timestamp())
  where organization_id = ${organizationId} and id = ${contact.id}
  returning ${factColumns(tx)}
`
