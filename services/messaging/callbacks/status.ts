import { waId } from '@app/shared/contracts/fields.ts'
import type { Recorded } from '@app/shared/events/events.ts'
import { z } from 'zod'
import { platformId } from '../upstream/platform-id.ts'
import { epoch } from './epoch.ts'
import { errorCode } from './error-code.ts'
import type { WaitingItem } from './waiting-items.ts'

const words = z.string().nullish().catch(null)

/** One without a code tells no reason; the failure counts all the same. */
const Fault = z.looseObject({
  code: errorCode,
  title: words,
  message: words,
  error_data: z.looseObject({ details: words }).nullish().catch(null),
})

/** What the platform tells of a message that was sent. */
export const Status = z.looseObject({
  id: platformId,
  status: z.enum(['sent', 'delivered', 'read', 'failed', 'played']),
  timestamp: epoch,
  recipient_id: waId.optional().catch(undefined),
  biz_opaque_callback_data: words,
  errors: z.array(Fault.nullable().catch(null)).nullish().catch(null),
})

export interface Reported {
  item: WaitingItem
  status: z.output<typeof Status>
  event: Recorded
}
