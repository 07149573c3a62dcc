import { z } from 'zod'
import type { App } from '../app.ts'
import { tellField } from '../callbacks/tell-field.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { Block, kind, nowSeconds } from './kind.ts'

/** What the platform tells beside each event, where it tells anything. */
const blocks: Partial<Record<string, (number: PhoneNumber, app: App) => object>> = {
  ACCOUNT_VIOLATION: () => ({ violation_info: { violation_type: 'SCAM' } }),
  ACCOUNT_RESTRICTION: () => ({
    restriction_info: [
      { restriction_type: 'RESTRICTED_BIZ_INITIATED_MESSAGING', expiration: Number(nowSeconds()) + 7 * 86_400 },
    ],
  }),
  DISABLED_UPDATE: () => ({ ban_info: { waba_ban_state: 'DISABLE', waba_ban_date: 'November 20, 2026' } }),
  PARTNER_ADDED: wabaInfo,
  PARTNER_REMOVED: (number) => ({
    ...wabaInfo(number),
    disconnection_info: { reason: 'USER_INITIATED', initiated_by: 'BUSINESS' },
  }),
  PARTNER_APP_INSTALLED: appInfo,
  PARTNER_APP_UNINSTALLED: appInfo,
  ACCOUNT_OFFBOARDED: wabaInfo,
  ACCOUNT_RECONNECTED: wabaInfo,
}

function wabaInfo({ businessAccountId }: PhoneNumber) {
  return { waba_info: { waba_id: businessAccountId, owner_business_id: `9${businessAccountId.slice(1)}` } }
}

function appInfo(number: PhoneNumber, { options }: App) {
  return { waba_info: { ...wabaInfo(number).waba_info, partner_app_id: options.appId } }
}

/** The business that our app belongs to: what the platform tells of its ties comes in an entry of its own. */
const partnerId = '35602282435505'

/** Any event of a business account; `value` adds to what comes with it, or replaces it. */
export const accountUpdate = kind(
  { event: z.string().min(1), value: Block.default({}) },
  (app, number, { event, value }) => {
    const isOfPartner = event.startsWith('PARTNER_')
    const about = { event, ...blocks[event]?.(number, app), ...value }
    return isOfPartner
      ? tellField(app, number.businessAccountId, 'account_update', about, partnerId)
      : tellField(app, number.businessAccountId, 'account_update', { phone_number: number.displayDigits, ...about })
  },
)

/** Quality and limits of a number. */
export const quality = kind(
  { event: z.string().min(1), current_limit: z.string().default('TIER_1K'), value: Block.default({}) },
  (app, number, { event, current_limit, value }) =>
    tellField(app, number.businessAccountId, 'phone_number_quality_update', {
      display_phone_number: number.displayDigits,
      event,
      current_limit,
      ...value,
    }),
)

/** The PIN of a number was changed, or its reset asked for. */
export const security = kind(
  {
    event: z.enum(['PIN_CHANGED', 'PIN_RESET_REQUEST', 'PIN_RESET_SUCCESS']),
    requester: z.string().optional(),
  },
  (app, number, told) =>
    tellField(app, number.businessAccountId, 'security', { display_phone_number: number.displayDigits, ...told }),
)

/** Any other field of the account, known or not yet: `field` and its whole `value`. */
export const field = kind(
  { field: z.string().regex(/^[a-z_]+$/, 'must be the name of a field'), value: Block },
  (app, number, told) => tellField(app, number.businessAccountId, told.field, told.value),
)

/** What was decided of a number's shown name. */
export const nameUpdate = kind(
  {
    decision: z.enum(['APPROVED', 'REJECTED', 'DEFERRED', 'PENDING']),
    rejection_reason: z.string().optional(),
  },
  (app, number, told) =>
    tellField(app, number.businessAccountId, 'phone_number_name_update', {
      display_phone_number: number.displayDigits,
      requested_verified_name: number.verifiedName,
      ...told,
    }),
)

/** What was decided of the account itself. */
export const accountReview = kind(
  { decision: z.enum(['APPROVED', 'REJECTED', 'PENDING', 'DEFERRED']) },
  (app, number, told) => tellField(app, number.businessAccountId, 'account_review_update', told),
)
