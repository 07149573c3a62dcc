import { randomInt } from 'node:crypto'
import type { AccountState } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import type { z } from 'zod'

export type Account = z.output<typeof AccountState>

/** What platform tells of a number of a new organization. */
export const newAccountState = (changes: Partial<Account> = {}): Account => ({
  account_id: newId('acc'),
  organization_id: newId('org'),
  phone_number_id: String(randomInt(1e11, 1e12)),
  business_account_id: '102290129340398',
  version: 1,
  phone_number: '+15550001111',
  name: 'Acme Support',
  team_id: newId('team'),
  customer: null,
  refusal: null,
  attached: true,
  sealed_token: 'sealed',
  settings: {
    window_check: 'strict',
    require_marketing_consent: false,
    unknown_outcome: 'fail',
    ordering: 'strict',
    message_ttl_hours: 24,
  },
  ...changes,
})
