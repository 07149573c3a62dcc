import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { importContacts } from '@app/shared/contracts/directory-changes.ts'
import { waId } from '@app/shared/contracts/fields.ts'
import { newId } from '@app/shared/values/ids.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import type { Change } from './changes.ts'
import { epoch } from './epoch.ts'
import { fitParts } from './fit-parts.ts'

const Value = z.looseObject({ state_sync: z.array(z.unknown()) })

const Entry = z.looseObject({
  type: z.literal('contact'),
  contact: z.looseObject({
    full_name: z.string().nullish().catch(null),
    first_name: z.string().nullish().catch(null),
    phone_number: z
      .string()
      .transform((number) => number.replaceAll(/\D/g, ''))
      .pipe(waId),
  }),
  action: z.enum(['add', 'remove']),
  metadata: z.looseObject({ timestamp: epoch }),
})

/** The address book of the number's phone app. An entry that is no contact with a number is left out, and logged. */
export async function syncContacts(core: Core, change: Change): Promise<boolean> {
  const { phoneNumberId, organizationId, value } = change
  if (phoneNumberId === null) return true
  const told = Value.parse(value).state_sync
  const entries = fitParts(core, change, Entry, told).map(({ contact, action, metadata }) => {
    const name = contact.full_name ?? contact.first_name ?? null
    return {
      wa_id: contact.phone_number,
      name: name?.slice(0, 1000).toWellFormed() ?? null,
      action,
      at: metadata.timestamp.toISOString(),
    }
  })
  if (entries.length === 0) return true
  await call(
    core,
    importContacts,
    { params: { phone_number_id: phoneNumberId }, body: { contacts: entries } },
    systemCaller(organizationId, newId('req')),
  )
  return true
}
