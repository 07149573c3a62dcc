import { consume, type Consuming } from '@app/shared/events/consume.ts'
import { marketingStopped } from '@app/shared/contracts/messaging-changes.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { DataService } from '@app/shared/service/service.ts'
import type { z } from 'zod'
import { contactParties, nobody } from './contact-parties.ts'
import { mayHaveBeen, waitForTakers } from './identities.ts'
import { setPreferences } from './record-preferences.ts'
import { ownersOf, rememberStop } from './remembered-stops.ts'

/** The platform refused a marketing message since its recipient wants none: as good as the recipient's own word. */
export const consumeMarketingStops = (app: DataService): Consuming =>
  consume(app, consumers.directoryMarketingStops.name, marketingStopped, (_, stop, { organization }) =>
    noteStop(app.sql, organization, stop),
  )

type Stop = z.output<(typeof marketingStopped)['data']>

/**
 * Of a contact that was deleted since, the stop is remembered, and is that of whoever has its name by now, unless it asked for marketing later.
 * Noted again, it changes nothing: each step is committed by itself, so that whoever is just made finds the stop, or is found.
 */
export async function noteStop(sql: Sql, organizationId: string, stop: Stop): Promise<void> {
  const { contact_id: contactId, recipient, at } = stop
  const word = { organization_id: organizationId, value: 'stop' as const, at }
  // Twice: one that was just being merged was waited for, and passes it on when it is asked again.
  const noteOf = async (ids: string[]) => {
    const words = ids.map((id) => ({ ...word, contact_id: id }))
    return (await setPreferences(sql, words)) + (await setPreferences(sql, words))
  }
  if ((await noteOf([contactId])) > 0 || !recipient) return
  if ((await contactParties(sql, { organizationId }, contactId)) !== nobody) return
  if (await hasResumedSince(sql, organizationId, contactId, at)) return
  const names = recipient.startsWith('+')
    ? { phoneNumber: recipient, waId: null, bsuid: null }
    : { phoneNumber: null, waId: null, bsuid: recipient }
  const person = { organizationId, phoneNumberId: stop.phone_number_id, identities: mayHaveBeen(names) }
  await rememberStop(sql, person, at)
  await waitForTakers(sql, person, person.identities)
  await noteOf(await ownersOf(sql, person))
}

/** Whether a contact that is gone, or the one that it was merged into, has said so after a moment: of a deleted one its last word is kept. */
async function hasResumedSince(sql: Sql, organizationId: string, contactId: string, at: string) {
  const rows = await sql`
    with recursive chain as (
      select merged_into, marketing_preference, marketing_preference_at from contacts
      where organization_id = ${organizationId} and id = ${contactId}
      union all
      select c.merged_into, c.marketing_preference, c.marketing_preference_at from chain
      cross join lateral (
        select * from contacts where organization_id = ${organizationId} and id = chain.merged_into limit 1
      ) c
    )
    select from chain where marketing_preference = 'resume' and marketing_preference_at > ${at}::text::timestamptz
  `
  return rows.length > 0
}
