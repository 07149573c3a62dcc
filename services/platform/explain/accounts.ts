import { type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import { type Refusal, refusalOf } from '../accounts/refusal.ts'
import type { AccountStatus } from '../accounts/status.ts'
import { customerOf, type CustomerStatus } from '../customers/customers.ts'
import type { OrganizationRow } from '../organizations/organizations.ts'

interface ExplainedAccount {
  id: string
  organizationId: string
  phoneNumberId: string | null
  businessAccountId: string
  customerId: string | null
  customerStatus: CustomerStatus | null
  status: AccountStatus
  upstreamStatus: string | null
  attached: boolean
  removed: boolean
  reportedUntil: Date | null
  version: string
  createdAt: Date
  updatedAt: Date
  attachedAt: Date | null
  returnedAt: Date | null
  polledAt: Date | null
  pollAt: Date | null
  pollFailures: number
  subscription: OrganizationRow['subscription']
  features: OrganizationRow['features']
}

/** `which`: of `accounts a` and `organizations o`. */
export const accountsWhere = (sql: Sql | TransactionSql, which: Fragment) => sql<ExplainedAccount[]>`
  select a.id, a.organization_id, a.phone_number_id, a.business_account_id, a.customer_id, c.status as customer_status,
    a.status, a.upstream_status, a.attached, a.removed, a.reported_until, a.version, a.created_at, a.updated_at,
    a.attached_at, a.returned_at, a.polled_at, case when a.sealed_token is not null then a.poll_at end as poll_at,
    a.poll_failures, o.subscription, o.features
  from organizations o join accounts a on a.organization_id = o.id
  left join ${customerOf(sql, sql`a.customer_id`)} c on true
  where ${which} order by a.id
`

export function momentsOf(account: ExplainedAccount): Moment[] {
  const { id, organizationId, phoneNumberId, businessAccountId, customerId } = account
  const { createdAt, updatedAt, attachedAt, returnedAt, polledAt } = account
  const name = { account_id: id }
  const about = {
    ...name,
    organization_id: organizationId,
    phone_number_id: phoneNumberId,
    business_account_id: businessAccountId,
    customer_id: customerId,
  }
  return [
    momentAt(createdAt, 'the account was made', about),
    ...(attachedAt ? [momentAt(attachedAt, 'was connected last', name)] : []),
    ...(returnedAt ? [momentAt(returnedAt, 'was connected, given back or taken away last', name)] : []),
    ...(polledAt ? [momentAt(polledAt, 'the platform was asked last how it is', name)] : []),
    momentAt(updatedAt, 'was changed last', { ...name, version: Number(account.version) }),
    standingOf(account),
  ]
}

function standingOf(account: ExplainedAccount): Moment {
  const { id, status, upstreamStatus, attached, pollAt, pollFailures, reportedUntil } = account
  return standing(wordsOf(account), {
    account_id: id,
    status,
    upstream_status: upstreamStatus,
    ...(reportedUntil && reportedUntil > new Date() && { reported_until: reportedUntil }),
    ...(pollFailures > 0 && { questions_without_an_answer: pollFailures }),
    ...(attached && pollAt && { next_at: pollAt }),
  })
}

/** Why sends are refused, in words. */
const reasons: Record<NonNullable<Refusal>, (account: ExplainedAccount) => string> = {
  account_not_connected: ({ removed, upstreamStatus }) =>
    removed
      ? 'the business took it from our app, and has to give it back'
      : `the platform says ${upstreamStatus ?? 'nothing of it'}, or takes its token no more`,
  chat_number_not_verified: ({ upstreamStatus }) =>
    `it is still to be verified and registered: the platform says ${upstreamStatus ?? 'nothing of it'}`,
  account_restricted: ({ upstreamStatus, reportedUntil }) =>
    reportedUntil && reportedUntil > new Date()
      ? `the platform reported a restriction, which stands until ${reportedUntil.toISOString()} at least`
      : `the platform restricts it: it says ${upstreamStatus ?? 'nothing of it'}`,
  customer_suspended: ({ customerStatus }) => `its customer is ${customerStatus}`,
  subscription_inactive: () => 'the subscription of its organization has lapsed',
  feature_not_entitled: () => 'its organization is not entitled to `messaging`',
}

function wordsOf(account: ExplainedAccount): string {
  const { attached, phoneNumberId, businessAccountId } = account
  if (!attached && phoneNumberId === null)
    return `waited for the business account ${businessAccountId} to have one number to choose until its setup link was over, and a later link goes on with it`
  if (!attached)
    return 'is not this organization’s any more: it was removed, and sends are refused (account_not_connected)'
  if (phoneNumberId === null) return `waits for the business account ${businessAccountId} to have one number to choose`
  const refusal = refusalOf(account)
  if (refusal === null) return `is ${account.status}, and sends are taken`
  return `is ${account.status}, and sends are refused (${refusal}): ${reasons[refusal](account)}`
}
