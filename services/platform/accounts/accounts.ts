import type { Account } from '@app/shared/contracts/platform.ts'
import { boundToAccount } from '@app/shared/secrets/account-token.ts'
import { sealedColumn } from '@app/shared/secrets/sealed-columns.ts'
import type { z } from 'zod'
import type { AccountStatus } from './status.ts'

export interface AccountRow {
  id: string
  phoneNumberId: string | null
  phoneNumber: string | null
  name: string | null
  status: AccountStatus
  upstreamStatus: string | null
  customerId: string | null
}

export const accountColumns = [
  'id',
  'phone_number_id',
  'phone_number',
  'name',
  'status',
  'upstream_status',
  'customer_id',
]

export const toAccount = (row: AccountRow): z.output<typeof Account> => ({
  object: 'account',
  phone_number_id: row.phoneNumberId,
  phone_number: row.phoneNumber,
  name: row.name,
  status: row.status,
  upstream_status: row.upstreamStatus,
  customer_id: row.customerId,
})

/** The tokens that numbers are used with. */
export const sealedTokens = sealedColumn('sealed_token', {
  table: 'accounts',
  rowKey: ['organization_id', 'id'],
  boundBy: 'id',
  boundTo: ([id = '']) => boundToAccount(id),
})
