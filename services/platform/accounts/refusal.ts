import type { AccountState } from '@app/shared/contracts/platform.ts'
import type { z } from 'zod'
import type { CustomerStatus } from '../customers/customers.ts'
import type { OrganizationRow } from '../organizations/organizations.ts'
import type { AccountStatus } from './status.ts'

export type Refusal = z.output<typeof AccountState>['refusal']

const byStatus: Record<AccountStatus, Refusal> = {
  connected: null,
  disconnected: 'account_not_connected',
  onboarding: 'chat_number_not_verified',
  degraded: 'account_restricted',
}

interface Standing {
  status: AccountStatus
  /** Null for an account of the organization itself. */
  customerStatus: CustomerStatus | null
  subscription: OrganizationRow['subscription']
  features: OrganizationRow['features']
}

/**
 * Why a send from the account is refused, the first reason of these: its own status, its customer's, the
 * subscription, the entitlement.
 */
export function refusalOf({ status, customerStatus, subscription, features }: Standing): Refusal {
  const refusal = byStatus[status]
  if (refusal !== null) return refusal
  if (customerStatus === 'suspended' || customerStatus === 'archived') return 'customer_suspended'
  if (subscription === 'lapsed') return 'subscription_inactive'
  return features.includes('messaging') ? null : 'feature_not_entitled'
}
