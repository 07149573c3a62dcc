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

/** The platform refused a marketing message since its recipient wants none: as good as the recipient's own word. */
export const consumeMarketingStops = (app: DataService): Consuming =>
  consume(app, consumers.directoryMarketingStops.name, marketingStopped, (tx, stop, { organization }) =>
    noteStop(tx, organization, stop),
  )

type Stop = z.output<(typeof marketingStopped)['data']>

/** Of a contact that was deleted since, the stop is remembered, and is that of whoever has its name by now. */
export async function noteStop(tx: TransactionSql, organizationId: string, stop: Stop): Promise<void> {
  const { contact_id: contactId, recipient, at } = stop
  const preferenceOf = (id: string) => ({ organization_id: organizationId, contact_id: id, value: 'stop' as const, at })
  if ((await setPreferences(tx, [preferenceOf(contactId)])) > 0 || !recipient) return
  if ((await contactParties(tx, { organizationId }, contactId)) !== nobody) return
  const names = recipient.startsWith('+')
    ? { phoneNumber: recipient, waId: null, bsuid: null }
    : { phoneNumber: null, waId: null, bsuid: recipient }
  const person = { organizationId, phoneNumberId: stop.phone_number_id, identities: mayHaveBeen(names) }
  await setPreferences(tx, (await ownersOf(tx, person)).map(preferenceOf))
  await rememberStop(tx, person, at)
}
