import type { App } from '../app.ts'
import type { Identity } from './identities.ts'
import { identityUpdated, isIdentityUpdate, type Origin } from './identity-updated.ts'
import type { Profile } from './sender.ts'

/** A contact, what a message told of it, and the names that it is known by from now on. */
export interface Lesson {
  id: string
  before: Profile
  after: Profile
  identities: Identity[]
}

/**
 * Writes what a contact was taught, with the event if it is one. False when the contact is not any more what it was when
 * the lesson was made: look again. A name that another contact took meanwhile stays its own, and the next message that
 * has both merges them.
 */
export async function teachContact({ sql, relay }: App, lesson: Lesson, origin: Origin): Promise<boolean> {
  const { id, before, after, identities } = lesson
  const { organizationId, phoneNumberId } = origin
  const events = isIdentityUpdate(before, after) ? [identityUpdated(id, before, after, origin)] : []
  const taught = await sql`
    with taught as (
      update contacts set phone_number = ${after.phoneNumber}, wa_id = ${after.waId}, bsuid = ${after.bsuid},
        parent_bsuid = ${after.parentBsuid}, username = ${after.username}, name = ${after.name}, updated_at = now()
      where organization_id = ${organizationId} and id = ${id} and deleted_at is null
        and (phone_number, wa_id, bsuid, parent_bsuid, username, name) is not distinct from
          (${before.phoneNumber}, ${before.waId}, ${before.bsuid}, ${before.parentBsuid}, ${before.username}, ${before.name})
      returning id
    ), named as (
      insert into identities (organization_id, phone_number_id, kind, value, contact_id)
      select ${organizationId}, ${phoneNumberId}, i.kind, i.value, taught.id
      from taught cross join json_to_recordset(${JSON.stringify(identities)}::text::json) as i(kind text, value text)
      order by i.kind, i.value
      on conflict do nothing
    ), told as (
      insert into outbox (id, subject, headers, payload)
      select e.id, e.subject, e.headers, convert_to(e.payload, 'UTF8')
      from taught cross join json_to_recordset(${JSON.stringify(events)}::text::json)
        as e(id text, subject text, headers jsonb, payload text)
    )
    select id from taught
  `
  if (taught.length === 0) return false
  if (events.length > 0) relay.wake()
  return true
}
