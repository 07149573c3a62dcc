import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { changeIdentity } from '@app/shared/contracts/directory-changes.ts'
import { bsuid, waId } from '@app/shared/contracts/fields.ts'
import { newId, newIdAt } from '@app/shared/values/ids.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import { platformId } from '../upstream/platform-id.ts'
import { epoch } from './epoch.ts'
import { insertImported } from './insert-imported.ts'
import type { WaitingItem } from './waiting-items.ts'

const digits = waId.nullish().catch(null)
const userId = bsuid.nullish().catch(null)

const SystemMessage = z.looseObject({
  id: platformId,
  timestamp: epoch,
  from: digits,
  from_user_id: userId,
  system: z
    .looseObject({
      wa_id: digits,
      new_wa_id: digits,
      user_id: userId,
      /** One about a user id alone may name its person in no other way. */
      previous_user_id: userId,
      parent_user_id: z.string().nullish().catch(null),
    })
    .catch({}),
})

/** What makes its person known may be recorded a little later, such as a message of the same callback. So many looks take an hour. */
const mostLooks = 16

/**
 * A system message tells of its person, who did not write it: new names go to directory, and a row stays in the
 * conversation, without an event, unread count or window. One about somebody whom nobody knows waits for an hour (false), and then
 * changes nothing.
 */
export async function recordSystem(core: Core, item: WaitingItem): Promise<boolean> {
  const { id: upstreamId, timestamp, from = null, from_user_id: sender, system } = SystemMessage.parse(item.part)
  const before = system.previous_user_id ?? sender ?? null
  const after = system.user_id ?? null
  const { conversation, contact } = await call(
    core,
    changeIdentity,
    {
      params: { phone_number_id: item.phoneNumberId },
      body: {
        id: upstreamId,
        // The sender may have the new one already, which says nothing of the one before.
        previous: { wa_id: from, bsuid: before === after ? null : before },
        current: {
          wa_id: system.wa_id ?? system.new_wa_id ?? null,
          bsuid: after,
          parent_bsuid: system.parent_user_id ?? null,
        },
        at: timestamp.toISOString(),
      },
    },
    systemCaller(item.organizationId, newId('req')),
  )
  if (!conversation || !contact) return item.attempts >= mostLooks
  await core.sql.begin((tx) =>
    insertImported(tx, [
      {
        organizationId: item.organizationId,
        phoneNumberId: item.phoneNumberId,
        id: newIdAt('msg', timestamp),
        upstreamId,
        parties: { conversation, contact },
        direction: 'inbound',
        contents: { type: 'unsupported', content: null, unsupported: 'system' },
        recipient: null,
        body: system,
        contextId: null,
        source: 'api',
        status: 'delivered',
        rank: 4,
        media: null,
        event: null,
      },
    ]),
  )
  return true
}
