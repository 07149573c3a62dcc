import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { changeIdentity } from '@app/shared/contracts/directory-changes.ts'
import { bsuid, waId } from '@app/shared/contracts/fields.ts'
import { newId } from '@app/shared/values/ids.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import type { Change } from './changes.ts'
import { epoch } from './epoch.ts'
import { fitParts } from './fit-parts.ts'

const Value = z.looseObject({ user_id_update: z.array(z.unknown()) })

const Update = z.looseObject({
  wa_id: waId.nullish().catch(null),
  user_id: z.looseObject({ previous: bsuid.nullish(), current: bsuid }),
  parent_user_id: z.looseObject({ current: z.string().nullish() }).nullish().catch(null),
  timestamp: epoch,
})

/**
 * People whose user id the platform issued anew; one of another shape is left out. False while one of them is not known by
 * the id before.
 */
export async function updateUserIds(core: Core, change: Change): Promise<boolean> {
  if (change.phoneNumberId === null) return true
  const { phoneNumberId } = change
  let areKnown = true
  for (const update of fitParts(core, change, Update, Value.parse(change.value).user_id_update)) {
    const { wa_id: waId = null, user_id: userId, parent_user_id: parent, timestamp } = update
    const previous = userId.previous ?? null
    const { contact } = await call(
      core,
      changeIdentity,
      {
        params: { phone_number_id: phoneNumberId },
        body: {
          id: `${previous ?? waId ?? ''}>${userId.current}:${timestamp.getTime()}`,
          previous: { wa_id: waId, bsuid: previous },
          current: { wa_id: waId, bsuid: userId.current, parent_bsuid: parent?.current ?? null },
          at: timestamp.toISOString(),
        },
      },
      systemCaller(change.organizationId, newId('req')),
    )
    areKnown &&= contact !== null
  }
  return areKnown
}
