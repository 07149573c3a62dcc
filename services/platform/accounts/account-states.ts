import { isDeepStrictEqual } from 'node:util'
import type { Caller } from '@app/shared/api/contract.ts'
import { type AccountState as Contract, accountChanged } from '@app/shared/contracts/platform.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import { limitTo } from '@app/shared/database/limit-to.ts'
import { record, recorded } from '@app/shared/events/events.ts'
import type { z } from 'zod'
import { customerOf, type CustomerStatus } from '../customers/customers.ts'
import type { OrganizationRow } from '../organizations/organizations.ts'
import { settingsOf } from '../organizations/settings.ts'
import { refusalOf } from './refusal.ts'
import type { AccountStatus } from './status.ts'

export type AccountState = z.output<typeof Contract>

interface Row {
  id: string
  organizationId: string
  phoneNumberId: string
  businessAccountId: string
  version: string
  phoneNumber: string | null
  name: string | null
  teamId: string
  customerId: string | null
  customerName: string | null
  customerStatus: CustomerStatus | null
  status: AccountStatus
  messagesPerSecond: number | null
  attached: boolean
  attachedAt: Date | null
  sealedToken: string
  subscription: OrganizationRow['subscription']
  features: OrganizationRow['features']
  settings: OrganizationRow['settings']
  retentionDays: OrganizationRow['retentionDays']
}

/**
 * What other services keep of a number, attached or not. The organization's row is locked by who changes it or its numbers, so
 * that no state mixes two changes.
 */
export function statesOf(
  sql: Sql | TransactionSql,
  organizationId: string,
  accountId: string,
): Promise<AccountState[]> {
  return readStates(sql, organizationId, sql`a.id = ${accountId}`)
}

/** As `statesOf`, of all numbers; of detached ones too, since what they received is kept as long as the organization says. */
export function statesOfOrganization(tx: TransactionSql, organizationId: string): Promise<AccountState[]> {
  return readStates(tx, organizationId, tx`true`)
}

/** As `statesOf`, of a customer's numbers; of detached ones too, since what they received names the customer. */
export function statesOfCustomer(
  tx: TransactionSql,
  organizationId: string,
  customerId: string,
): Promise<AccountState[]> {
  return readStates(tx, organizationId, tx`a.customer_id = ${customerId}`)
}

/** Numbers that one statement reads, changes or tells of: a statement for 30,000 may time out, and then nothing changes. */
const partRows = 1_000

async function readStates(sql: Sql | TransactionSql, organizationId: string, which: Fragment) {
  const states: AccountState[] = []
  for (;;) {
    const rows = await readPart(sql, organizationId, sql`${which} and a.id > ${states.at(-1)?.account_id ?? ''}`)
    states.push(...rows.map(toState))
    if (rows.length < partRows) return states
  }
}

const readPart = (sql: Sql | TransactionSql, organizationId: string, which: Fragment) => sql<Row[]>`
    select a.id, a.organization_id, a.phone_number_id, a.business_account_id, a.version, a.phone_number, a.name,
      a.team_id, a.status, a.messages_per_second, a.attached, a.attached_at, a.sealed_token, c.id as customer_id, c.name as customer_name,
      c.status as customer_status, o.subscription, o.features, o.settings, o.retention_days
    from accounts a join organizations o on o.id = a.organization_id
    left join ${customerOf(sql, sql`a.customer_id`)} c on true
    where a.organization_id = ${organizationId} and ${which}
      and a.phone_number_id is not null and a.sealed_token is not null
    order by a.id ${limitTo(sql, partRows)}
  `

const toState = (row: Row): AccountState => ({
  account_id: row.id,
  organization_id: row.organizationId,
  phone_number_id: row.phoneNumberId,
  business_account_id: row.businessAccountId,
  version: Number(row.version),
  phone_number: row.phoneNumber,
  name: row.name,
  team_id: row.teamId,
  customer: row.customerId === null ? null : { id: row.customerId, name: row.customerName ?? '' },
  refusal: refusalOf(row),
  attached: row.attached,
  attached_at: row.attachedAt?.toISOString() ?? null,
  sealed_token: row.sealedToken,
  settings: settingsOf(row.settings),
  retention_days: row.retentionDays,
  messages_per_second: row.messagesPerSecond,
})

/** Gives each state that differs from the one before a new version and an event. Answers all states as they are now. */
export async function recordChanges(
  tx: TransactionSql,
  before: AccountState[],
  after: AccountState[],
  caller: Caller,
): Promise<AccountState[]> {
  const changed = after.filter((state, n) => !isDeepStrictEqual(state, before[n]))
  for (let n = 0; n < changed.length; n += partRows) await recordPart(tx, changed.slice(n, n + partRows), caller)
  return after
}

async function recordPart(tx: TransactionSql, changed: AccountState[], caller: Caller) {
  const ids = changed.map(({ organization_id, account_id }) => ({ organization_id, account_id }))
  await tx`
    update accounts set version = version + 1, updated_at = now()
    where (organization_id, id) in (
      select * from json_to_recordset(${JSON.stringify(ids)}::text::json) as c(organization_id text, account_id text)
    )
  `
  for (const state of changed) state.version++
  await recordStates(tx, changed, caller)
}

/** Records an event for each. */
export const recordStates = (tx: TransactionSql, states: AccountState[], { traceparent }: Caller) =>
  record(
    tx,
    states.map((state) =>
      recorded(accountChanged, state, {
        organizationId: state.organization_id,
        phoneNumberId: state.phone_number_id,
        traceparent,
      }),
    ),
  )
