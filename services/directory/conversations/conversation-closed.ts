import { conversationClosed } from '@app/shared/contracts/conversations.ts'
import { type Recorded, recorded } from '@app/shared/events/events.ts'
import type { Origin } from '../contacts/identity-updated.ts'

export const closedEvent = (id: string, origin: Origin): Recorded =>
  recorded(
    conversationClosed,
    {
      conversation: {
        id,
        object: 'conversation',
        status: 'resolved',
        closed_by_user_id: null,
        phone_number_id: origin.phoneNumberId,
      },
    },
    origin,
  )
