import { consume, type Consuming } from '@app/shared/events/consume.ts'
import { marketingStopped } from '@app/shared/contracts/messaging-changes.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { DataService } from '@app/shared/service/service.ts'
import type { z } from 'zod'
import { contactParties, nobody } from './contact-parties.ts'
import { mayHaveBeen } from './identities.ts'
import { setPreferences } from './record-preferences.ts'
import { ownersOf, rememberStop } from './remembered-stops.ts'
import { lookTwice } from '../races.ts'

/** The platform refused a marketing message since its recipient wants none: as good as the recipient's own word. */
export const consumeMarketingStops = (app: DataService): Consuming =>
  consume(app, consumers.directoryMarketingStops.name, marketingStopped, (tx, stop, { organization }) =>
    noteStop(tx, organization, stop),
  )

type Stop = z.output<(typeof marketingStopped)['data']>

/** Of a contact that was deleted since, the stop is remembered, and is that of whoever has its name by now, unless it asked for marketing later. */
export async function noteStop(tx: TransactionSql, organizationId: string, stop: Stop): Promise<void> {
  const { contact_id: contactId, recipient, at } = stop
  const preferenceOf = (id: string) => ({ organization_id: organizationId, contact_id: id, value: 'stop' as const, at })
  if ((await lookTwice(tx, () => setPreferences(tx, [preferenceOf(contactId)]))) > 0 || !recipient) return
  if ((await contactParties(tx, { organizationId }, contactId)) !== nobody) return
  if (await hasResumedSince(tx, organizationId, contactId, at)) return
  const names = recipient.startsWith('+')
    ? { phoneNumber: recipient, waId: null, bsuid: null }
    : { phoneNumber: null, waId: null, bsuid: recipient }
  const person = { organizationId, phoneNumberId: stop.phone_number_id, identities: mayHaveBeen(names) }
  await setPreferences(tx, (await ownersOf(tx, person)).map(preferenceOf))
  await rememberStop(tx, person, at)
}

/** Whether a contact that is gone, or the one that it was merged into, has said so after a moment: of a deleted one its last word is kept. */
async function hasResumedSince(tx: TransactionSql, organizationId: string, contactId: string, at: string) {
  const rows = await tx`
    with recursive chain as (
      select merged_into, marketing_preference, marketing_preference_at from contacts
      where organization_id = ${organizationId} and id = ${contactId}
      union all
      select c.merged_into, c.marketing_preference, c.marketing_preference_at from chain
      join contacts c on c.organization_id = ${organizationId} and c.id = chain.merged_into
    )
    select from chain where marketing_preference = 'resume' and marketing_preference_at > ${at}::text::timestamptz
  `
  return rows.length > 0
}
