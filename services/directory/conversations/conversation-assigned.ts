import { conversationAssigned } from '@app/shared/contracts/conversations.ts'
import { type Recorded, recorded } from '@app/shared/events/events.ts'
import type { Origin } from '../contacts/identity-updated.ts'
import type { ConversationRow } from './conversations.ts'

/** A conversation, the one that it is assigned to from now on, and its team. */
interface Assigned extends Pick<ConversationRow, 'id' | 'status' | 'assignedTo'> {
  previous: string | null
  teamId: string
}

export const assignedEvent = ({ id, status, assignedTo, previous, teamId }: Assigned, origin: Origin): Recorded =>
  recorded(
    conversationAssigned,
    {
      conversation: { id, object: 'conversation', status, phone_number_id: origin.phoneNumberId },
      assignee: { user_id: assignedTo, team_id: teamId, previous_user_id: previous },
    },
    origin,
  )
