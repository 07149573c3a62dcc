import type { TransactionSql } from '@app/shared/database/database.ts'
import { invalidField, notFound } from '@app/shared/api/problem.ts'
import type { Origin } from '../contacts/identity-updated.ts'

/** The team of a number, and with it of its contacts and conversations. */
export async function teamOfAccount(
  tx: TransactionSql,
  { organizationId, phoneNumberId }: Pick<Origin, 'organizationId' | 'phoneNumberId'>,
): Promise<string> {
  const [account] = await tx<{ teamId: string }[]>`
    select team_id from accounts where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  if (!account) throw notFound()
  return account.teamId
}

export function refuseOtherTeam(ofLabel: string, ofAccount: string): void {
  if (ofLabel !== ofAccount) throw invalidField('label_id', 'label_id: is the label of another team.')
}
