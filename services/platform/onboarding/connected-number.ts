import type { getSetup } from '@app/shared/contracts/onboarding.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { displayPhoneNumber } from '@app/shared/values/phone-number.ts'
import type { z } from 'zod'
import { accountColumns, type AccountRow } from '../accounts/accounts.ts'

type ConnectedNumber = NonNullable<z.input<typeof getSetup.answer>['number']>

/** What the page shows of an account; null without one. */
export async function findConnected(
  sql: Sql,
  organizationId: string,
  accountId: string | null,
): Promise<ConnectedNumber | null> {
  if (accountId === null) return null
  const [row] = await sql<AccountRow[]>`
    select ${sql(accountColumns)} from accounts where organization_id = ${organizationId} and id = ${accountId}
  `
  if (!row) return null
  const { phoneNumberId, phoneNumber, name, status } = row
  return {
    phone_number_id: phoneNumberId,
    phone_number: phoneNumber === null ? null : displayPhoneNumber(phoneNumber),
    name,
    registered: status === 'connected',
  }
}
