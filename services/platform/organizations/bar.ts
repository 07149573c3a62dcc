import type { TransactionSql } from '@app/shared/database/database.ts'
import { type FailureName, Problem } from '@app/shared/api/problem.ts'
import { type OrganizationRow, unknownOrganization } from './organizations.ts'

type Standing = Pick<OrganizationRow, 'subscription' | 'features'>

/** Why an organization may not change its customers, their setup links and their numbers now, or null. */
export function barOf({ subscription, features }: Standing): FailureName | null {
  if (!features.includes('platform')) return 'feature_not_entitled'
  return subscription === 'lapsed' ? 'subscription_lapsed' : null
}

/** As the organization stands in this moment, whatever a gateway remembers of it. Throws `barOf`. */
export async function refuseBarred(tx: TransactionSql, organizationId: string): Promise<void> {
  const [row] = await tx<Standing[]>`select subscription, features from organizations where id = ${organizationId}`
  if (!row) throw unknownOrganization()
  const bar = barOf(row)
  if (bar !== null) throw new Problem(bar)
}
