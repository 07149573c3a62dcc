import { marketingStopped } from '@app/shared/contracts/messaging-changes.ts'
import { type Recorded, recorded } from '@app/shared/events.ts'
import type { SentMessageRow } from './message-sent.ts'

/** The platform's code for a recipient who wants no marketing messages. */
const optedOut = 131050

/** The event to record beside the failure of a message, when the platform's code says that its recipient opted out. */
export function marketingStoppedEvents(message: SentMessageRow, providerCode: number | null, at: Date): Recorded[] {
  if (providerCode !== optedOut) return []
  const { organizationId, phoneNumberId, traceparent, parties } = message
  const data = { phone_number_id: phoneNumberId, contact_id: parties.contact.id, at: at.toISOString() }
  return [recorded(marketingStopped, data, { organizationId, phoneNumberId, traceparent })]
}
