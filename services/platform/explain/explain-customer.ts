import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainCustomer as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { customerColumns, type CustomerRow, type CustomerStatus } from '../customers/customers.ts'
import { linkColumns, type LinkRow } from '../setup-links/setup-links.ts'
import { accountsWhere, momentsOf } from './accounts.ts'

export const explainCustomer: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const [customer] = await sql<CustomerRow[]>`select ${sql(customerColumns)} from customers where id = ${id}`
  if (!customer) throw notFound()
  const { organizationId } = customer
  const accounts = await accountsWhere(sql, sql`a.organization_id = ${organizationId} and a.customer_id = ${id}`)
  return {
    history: [
      ...pastOf(customer),
      ...(await linksOf(sql, customer)),
      ...accounts.flatMap(momentsOf),
      standing(words[customer.status], { status: customer.status, numbers: accounts.length }),
    ],
  }
}

function pastOf({ organizationId, teamId, createdAt, firstNumberAt, archivedAt, updatedAt }: CustomerRow): Moment[] {
  return [
    momentAt(createdAt, 'was made', { organization_id: organizationId, team_id: teamId }),
    ...(firstNumberAt ? [momentAt(firstNumberAt, 'its first number was connected')] : []),
    ...(archivedAt ? [momentAt(archivedAt, 'was archived, and its open setup links revoked')] : []),
    ...(updatedAt > createdAt ? [momentAt(updatedAt, 'was changed last')] : []),
  ]
}

const words: Record<CustomerStatus, string> = {
  pending: 'is pending: it never had a number, and its first one makes it active',
  active: 'is active',
  suspended:
    'is suspended by its owner: sends from its numbers and its setup links are refused (customer_suspended) until that makes it active',
  archived:
    'is archived: sends from its numbers and its setup links are refused (customer_suspended), and only `customer restore` brings it back',
}

const shownLinks = 5

async function linksOf(sql: Sql, { organizationId, id }: CustomerRow): Promise<Moment[]> {
  const links = await sql<LinkRow[]>`
    select ${linkColumns(sql)} from setup_links l
    where l.organization_id = ${organizationId} and l.customer_id = ${id} order by l.id desc limit ${shownLinks}
  `
  return links.map((link) =>
    momentAt(link.createdAt, `its setup link ${link.id} was made, which is ${link.status}`, {
      setup_link_id: link.id,
      ...(link.status === 'active' && { expires_at: link.expiresAt }),
    }),
  )
}
