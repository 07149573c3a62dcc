import type { TransactionSql } from '@app/shared/database/database.ts'
import { organizationColumns, type OrganizationRow, unknownOrganization } from './organizations.ts'

/** Until the commit no other change of the organization, of its customers or of its accounts comes between. */
export async function lockOrganization(tx: TransactionSql, id: string): Promise<OrganizationRow> {
  const [row] = await tx<OrganizationRow[]>`
    select ${tx(organizationColumns)} from organizations where id = ${id} for no key update
  `
  if (!row) throw unknownOrganization()
  return row
}
