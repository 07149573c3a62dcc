import { accountReported } from '@app/shared/contracts/messaging.ts'
import { marketingStopped } from '@app/shared/contracts/messaging-changes.ts'
import { type Recorded, recorded } from '@app/shared/events/events.ts'
import { behaviourOf } from '../upstream/errors.ts'
import type { SentMessageRow } from './message-sent.ts'

type Refused = Pick<
  SentMessageRow,
  'organizationId' | 'phoneNumberId' | 'businessAccountId' | 'recipient' | 'parties' | 'traceparent'
>

interface Refusal {
  code: number | null
  /** When it is told. */
  at: Date
  /** When the platform was asked: the account may have been connected anew since. */
  askedAt?: Date
  /** Whether it bears on the state of the account, where more than the code tells that. */
  reportsAccount?: boolean | undefined
}

/** What a code of the platform tells beside the failure of the message: something about the account, or about the recipient. */
export function followUps(message: Refused, { code, at, askedAt = at, reportsAccount }: Refusal): Recorded[] {
  if (code === null) return []
  const { phoneNumberId, businessAccountId, recipient, parties } = message
  const origin = { organizationId: message.organizationId, phoneNumberId, traceparent: message.traceparent }
  if (reportsAccount ?? behaviourOf(code).reportsAccount) {
    const data = {
      phone_number_id: phoneNumberId,
      business_account_id: businessAccountId,
      code,
      change: null,
      at: askedAt.toISOString(),
    }
    return [recorded(accountReported, data, origin)]
  }
  if (code === optedOut) {
    const data = { phone_number_id: phoneNumberId, contact_id: parties.contact.id, recipient, at: at.toISOString() }
    return [recorded(marketingStopped, data, origin)]
  }
  return []
}

/** The recipient wants no marketing messages (the platform's error reference). */
const optedOut = 131050
