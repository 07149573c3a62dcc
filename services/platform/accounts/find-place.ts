import type { Input } from '@app/shared/api/contract.ts'
import type { connectAccount } from '@app/shared/contracts/platform.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { invalidField, Problem } from '@app/shared/api/problem.ts'
import type { CustomerRow } from '../customers/customers.ts'
import { unknownOrganization } from '../organizations/organizations.ts'
import { unknownTeam } from '../teams/teams.ts'

type Wanted = Input<typeof connectAccount>['body']

interface Place {
  teamId: string
  customerId: string | null
}

/**
 * Whose the number will be: the customer that is named, else the one that has it; and its team. Without a customer the
 * team that is named, else the one that has the number, else the organization's first.
 */
export async function findPlace(sql: Sql | TransactionSql, wanted: Wanted): Promise<Place> {
  const { organization_id: organizationId, phone_number_id: phoneNumberId } = wanted
  const [organization] = await sql`select id from organizations where id = ${organizationId}`
  if (!organization) throw unknownOrganization()
  const [known] = await sql<Place[]>`
    select team_id, customer_id from accounts
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  const teamId = await findTeam(sql, organizationId, wanted.team_id ?? known?.teamId ?? null)
  const customerId = wanted.customer_id ?? known?.customerId
  if (!customerId) return { teamId, customerId: null }
  const customer = await findCustomer(sql, organizationId, customerId)
  if (wanted.customer_id && customer.status === 'archived') {
    throw new Problem('customer_archived', { param: 'customer_id' })
  }
  if (wanted.team_id && wanted.team_id !== customer.teamId) {
    throw invalidField('team_id', "team_id must be the customer's team.")
  }
  return { teamId: customer.teamId, customerId }
}

async function findTeam(sql: Sql | TransactionSql, organizationId: string, teamId: string | null) {
  const [row] = await sql<{ id: string }[]>`
    select id from teams where organization_id = ${organizationId} and (${teamId}::text is null or id = ${teamId})
    order by id limit 1
  `
  if (!row) throw unknownTeam()
  return row.id
}

async function findCustomer(sql: Sql | TransactionSql, organizationId: string, id: string) {
  const [row] = await sql<Pick<CustomerRow, 'teamId' | 'status'>[]>`
    select team_id, status from customers where organization_id = ${organizationId} and id = ${id}
  `
  if (!row) throw new Problem('resource_not_found', { param: 'customer_id' })
  return row
}
