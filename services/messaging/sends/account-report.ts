import { accountReported } from '@app/shared/contracts/messaging.ts'
import { type Recorded, recorded } from '@app/shared/events.ts'
import { behaviourOf } from '../upstream/errors.ts'

interface Sender {
  organizationId: string
  phoneNumberId: string
  businessAccountId: string
}

/** Tells platform of a code that bears on the state of the sender's account; nothing for other codes. */
export function accountReportEvent(sender: Sender, code: number): Recorded[] {
  if (!behaviourOf(code).reportsAccount) return []
  const { organizationId, phoneNumberId, businessAccountId } = sender
  const data = { phone_number_id: phoneNumberId, business_account_id: businessAccountId, code, change: null }
  return [recorded(accountReported, data, { organizationId, phoneNumberId })]
}
