import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { FailureName } from '@app/shared/api/problem.ts'
import { customerOf, type CustomerStatus } from '../customers/customers.ts'
import { hashOf } from '../keys/keys.ts'
import { barOf } from '../organizations/bar.ts'
import type { OrganizationRow } from '../organizations/organizations.ts'
import { linkColumns, type LinkRow } from './setup-links.ts'

/** A setup link with whose it is. */
export interface Link extends LinkRow {
  organizationId: string
  organizationName: string
  customerName: string
  /** An account has its customer's team. */
  teamId: string
  /**
   * Why the link is of no use now: `setup_link_inactive`, `customer_suspended`, `feature_not_entitled`,
   * `subscription_lapsed`; null when it can be consumed.
   */
  refusal: FailureName | null
}

interface Row extends Omit<Link, 'refusal'> {
  customerStatus: CustomerStatus
  subscription: OrganizationRow['subscription']
  features: OrganizationRow['features']
}

/** The link that a visitor's token opens, whatever its status; null when no link has it. */
export async function findLinkByToken(sql: Sql | TransactionSql, token: string): Promise<Link | null> {
  const [row] = await sql<Row[]>`${selectLinks(sql)} where l.token_hash = ${hashOf(token)}`
  return row ? toLink(row) : null
}

/** The link as it is now; it stays so for a transaction that holds it and its customer. */
export async function readLink(sql: Sql | TransactionSql, { organizationId, id }: Pick<Link, 'organizationId' | 'id'>) {
  const [row] = await sql<[Row]>`${selectLinks(sql)} where l.organization_id = ${organizationId} and l.id = ${id}`
  return toLink(row)
}

const selectLinks = (sql: Sql | TransactionSql) => sql`
  select ${linkColumns(sql)}, l.organization_id, o.name as organization_name, o.subscription, o.features,
    c.name as customer_name, c.status as customer_status, c.team_id
  from setup_links l
  cross join ${customerOf(sql, sql`l.customer_id`)} c
  join organizations o on o.id = l.organization_id
`

const toLink = ({ customerStatus, subscription, features, ...link }: Row): Link => ({
  ...link,
  refusal: refusalOf(link.status, customerStatus) ?? barOf({ subscription, features }),
})

function refusalOf(status: LinkRow['status'], customer: CustomerStatus): FailureName | null {
  if (status !== 'active') return 'setup_link_inactive'
  return customer === 'suspended' ? 'customer_suspended' : null
}
