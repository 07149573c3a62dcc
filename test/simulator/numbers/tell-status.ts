import type { App } from '../app.ts'
import { tellField } from '../callbacks/tell-field.ts'
import type { PhoneNumber } from './numbers.ts'

/** The callback that follows a status, for those that have one: its field and what its value says. */
const changes: Partial<Record<PhoneNumber['status'], readonly [field: string, value: object]>> = {
  CONNECTED: ['account_update', { event: 'ACCOUNT_RECONNECTED' }],
  FLAGGED: ['phone_number_quality_update', { event: 'FLAGGED', current_limit: 'TIER_1K' }],
  RESTRICTED: [
    'account_update',
    { event: 'ACCOUNT_RESTRICTION', restriction_info: [{ restriction_type: 'RESTRICTED_BIZ_INITIATED_MESSAGING' }] },
  ],
  BANNED: [
    'account_update',
    { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'DISABLE', waba_ban_date: 'November 20, 2026' } },
  ],
  DISCONNECTED: ['account_update', { event: 'PARTNER_REMOVED' }],
  DELETED: ['account_update', { event: 'ACCOUNT_DELETED' }],
}

/** Sends the callback that follows a number's status, if there is one. */
export function tellStatus(app: App, number: PhoneNumber) {
  const change = changes[number.status]
  if (!change) return
  const [field, about] = change
  const shown = field === 'account_update' ? 'phone_number' : 'display_phone_number'
  tellField(app, number.businessAccountId, field, { ...about, [shown]: number.displayDigits })
}
