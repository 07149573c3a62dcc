import { waId } from '@app/shared/contracts/fields.ts'
import { z } from 'zod'
import { platformId } from '../upstream/platform-id.ts'
import type { WaitingItem } from './waiting-items.ts'

/** What the platform tells of a message that was sent. */
export const Status = z.looseObject({
  id: platformId,
  status: z.enum(['sent', 'delivered', 'read', 'failed', 'played']),
  timestamp: z.string().regex(/^\d{1,12}$/),
  recipient_id: waId.optional().catch(undefined),
  biz_opaque_callback_data: z.string().nullish(),
  errors: z
    .array(
      z.looseObject({
        code: z.number(),
        title: z.string().nullish(),
        message: z.string().nullish(),
        error_data: z.looseObject({ details: z.string().nullish() }).nullish(),
      }),
    )
    .nullish(),
})

export interface Reported {
  item: WaitingItem
  status: z.output<typeof Status>
}
