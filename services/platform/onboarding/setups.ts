import type { Sql, TransactionSql } from '@app/shared/database.ts'
import { notFound, Problem } from '@app/shared/problem.ts'
import type { CustomerStatus } from '../customers/customers.ts'
import { barOf } from '../organizations/bar.ts'
import type { OrganizationRow } from '../organizations/organizations.ts'
import { findLinkByToken, type LinkRow } from '../setup-links/setup-links.ts'

interface Owner {
  organizationName: string
  customerName: string
  customerStatus: CustomerStatus
  subscription: OrganizationRow['subscription']
  features: OrganizationRow['features']
}

/** A setup link with whom it is from and for. */
export interface Setup extends Owner {
  link: LinkRow
  /** `refused`: the customer is suspended or archived, or the organization may not. */
  state: LinkRow['status'] | 'refused'
}

/** @throws `resource_not_found` for a token that no link has */
export async function findSetup(sql: Sql, token: string): Promise<Setup> {
  const link = await findLinkByToken(sql, token)
  if (!link) throw notFound()
  const owner = await findOwner(sql, link)
  return { ...owner, link, state: link.status === 'active' && isRefused(owner) ? 'refused' : link.status }
}

/** As `findSetup`, of one that can be used now. */
export async function findOpenSetup(sql: Sql, token: string): Promise<Setup> {
  const setup = await findSetup(sql, token)
  if (setup.state === 'active') return setup
  throw new Problem(setup.state === 'refused' ? 'setup_refused' : 'setup_link_inactive')
}

/** Whether the customer may connect a number as it stands in this transaction. */
export async function refuseStanding(tx: TransactionSql, link: Pick<LinkRow, 'organizationId' | 'customerId'>) {
  if (isRefused(await findOwner(tx, link))) throw new Problem('setup_refused')
}

const isRefused = (owner: Owner) =>
  barOf(owner) !== null || owner.customerStatus === 'suspended' || owner.customerStatus === 'archived'

async function findOwner(sql: Sql | TransactionSql, link: Pick<LinkRow, 'organizationId' | 'customerId'>) {
  const [owner] = await sql<Owner[]>`
    select o.name as organization_name, o.subscription, o.features, c.name as customer_name, c.status as customer_status
    from customers c join organizations o on o.id = c.organization_id
    where c.organization_id = ${link.organizationId} and c.id = ${link.customerId}
  `
  if (!owner) throw notFound()
  return owner
}
