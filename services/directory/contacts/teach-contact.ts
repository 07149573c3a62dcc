import type { TransactionSql } from '@app/shared/database/database.ts'
import { recording } from '@app/shared/events/events.ts'
import type { App } from '../app.ts'
import { touchConversations } from '../conversations/touch-conversations.ts'
import { factColumns, type Facts, recordUpdated } from './contact-events.ts'
import { type Identity, mayHaveBeen } from './identities.ts'
import { identityUpdated, isIdentityUpdate, type Origin } from './identity-updated.ts'
import { mindStop } from './remembered-stops.ts'
import type { Profile } from './sender.ts'

/** A contact, what a message told of it, and the names that it is known by from now on. */
export interface Lesson {
  id: string
  before: Profile
  after: Profile
  identities: Identity[]
}

/**
 * Writes what a contact was taught, with the events of what changed. False when the contact is not any more what it was
 * when the lesson was made: look again. A name that another contact took meanwhile stays its own, and the next message
 * that has both merges them.
 */
export async function teachContact({ sql, relay, tellChanged }: App, lesson: Lesson, origin: Origin): Promise<boolean> {
  const { id, before, after } = lesson
  const isRenamed = before.name !== after.name
  const isShown = isRenamed || before.phoneNumber !== after.phoneNumber
  const teaching = sql.begin(async (tx) => {
    const contacts = await teach(tx, lesson, origin)
    if (contacts.length === 0) return false
    // A name that is new to it may be remembered to have stopped.
    await mindStop(tx, id, { ...origin, identities: mayHaveBeen(after) })
    if (isRenamed) await recordUpdated(tx, contacts, ['name'], origin)
    if (isShown) await touchConversations(tx, origin.organizationId, [id])
    return true
  })
  const isTaught = await teaching.finally(() => isShown && tellChanged([id]))
  if (isTaught && (isRenamed || isIdentityUpdate(before, after))) relay.wake()
  return isTaught
}

function teach(sql: TransactionSql, lesson: Lesson, origin: Origin) {
  const { id, before, after, identities } = lesson
  const { organizationId, phoneNumberId } = origin
  const events = isIdentityUpdate(before, after) ? [identityUpdated(id, before, after, origin)] : []
  return sql<Facts[]>`
    with taught as (
      update contacts set phone_number = ${after.phoneNumber}, wa_id = ${after.waId}, bsuid = ${after.bsuid},
        parent_bsuid = ${after.parentBsuid}, username = ${after.username}, name = ${after.name}, updated_at = greatest(updated_at, clock_timestamp())
      where organization_id = ${organizationId} and id = ${id} and deleted_at is null
        and (phone_number, wa_id, bsuid, parent_bsuid, username, name) is not distinct from
          (${before.phoneNumber}, ${before.waId}, ${before.bsuid}, ${before.parentBsuid}, ${before.username}, ${before.name})
      returning ${factColumns(sql)}
    ), named as (
      insert into identities (organization_id, phone_number_id, kind, value, contact_id)
      select ${organizationId}, ${phoneNumberId}, i.kind, i.value, taught.id
      from taught cross join json_to_recordset(${JSON.stringify(identities)}::text::json) as i(kind text, value text)
      order by i.kind, i.value
      on conflict do nothing
    ), told as (
      ${recording(sql, events, sql`exists (select from taught)`)}
    )
    select ${factColumns(sql)} from taught
  `
}
