import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { recordPreferences } from '@app/shared/contracts/directory-changes.ts'
import { bsuid, waId } from '@app/shared/contracts/fields.ts'
import { newId } from '@app/shared/values/ids.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import type { Change } from './changes.ts'
import { epoch } from './epoch.ts'
import { fitParts } from './fit-parts.ts'

const Value = z.looseObject({ user_preferences: z.array(z.unknown()) })

const Preference = z.looseObject({
  wa_id: waId.nullish().catch(null),
  user_id: bsuid.nullish().catch(null),
  category: z.string(),
  value: z.string(),
  timestamp: epoch,
})

const Wish = z.enum(['stop', 'resume'])

/** Whether people want marketing messages; a preference about anything else is not ours to know. */
export async function tellPreferences(core: Core, change: Change): Promise<boolean> {
  const { phoneNumberId, organizationId, value } = change
  if (phoneNumberId === null) return true
  const parts = fitParts(core, change, Preference, Value.parse(value).user_preferences)
  const preferences = parts.flatMap((preference) => {
    const wish = Wish.safeParse(preference.value)
    const { wa_id: waId = null, user_id: userId = null, category, timestamp } = preference
    if (category !== 'marketing_messages' || !wish.success || (waId === null && userId === null)) return []
    return [{ wa_id: waId, bsuid: userId, value: wish.data, at: timestamp.toISOString() }]
  })
  if (preferences.length === 0) return true
  await call(
    core,
    recordPreferences,
    { params: { phone_number_id: phoneNumberId }, body: { preferences } },
    systemCaller(organizationId, newId('req')),
  )
  return true
}
