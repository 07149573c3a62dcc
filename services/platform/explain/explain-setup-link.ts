import type { Handler } from '@app/shared/api/contract.ts'
import { type FailureName, notFound } from '@app/shared/api/problem.ts'
import { type explainSetupLink as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { type Link, readLink } from '../setup-links/find-link.ts'
import { walksOf } from './walks-of-link.ts'

export const explainSetupLink: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const link = await find(sql, id)
  if (!link) throw notFound()
  return { history: [...pastOf(link), ...(await walksOf(sql, link)), standingOf(link)] }
}

async function find(sql: Sql, id: string): Promise<Link | undefined> {
  const [found] = await sql<{ organizationId: string }[]>`
    select o.id as organization_id from organizations o
    where exists (select from setup_links where organization_id = o.id and id = ${id}) limit 1
  `
  return found && readLink(sql, { ...found, id })
}

function pastOf({ organizationId, customerId, createdAt, consumedAt, accountId, expiresAt, status }: Link): Moment[] {
  return [
    momentAt(createdAt, 'was made', { organization_id: organizationId, customer_id: customerId }),
    ...(consumedAt ? [momentAt(consumedAt, 'was consumed: a number was connected', { account_id: accountId })] : []),
    ...(status === 'expired' ? [momentAt(expiresAt, 'expired')] : []),
  ]
}

/** What keeps an active one from being used. */
const bars: Partial<Record<FailureName, string>> = {
  customer_suspended: 'its customer is suspended',
  feature_not_entitled: 'its organization is not entitled to `platform`',
  subscription_lapsed: 'the subscription of its organization has lapsed',
}

const words: Record<Exclude<Link['status'], 'active'>, string> = {
  consumed: 'is consumed: for another number its customer needs another link',
  expired: 'is expired: its customer needs another link',
  revoked: 'is revoked, by its owner or with its customer; the records do not know when',
}

function standingOf({ status, refusal, expiresAt }: Link): Moment {
  const details = { status, expires_at: expiresAt }
  if (status !== 'active') return standing(words[status], details)
  return refusal === null
    ? standing(`can be used until ${expiresAt.toISOString()}`, details)
    : standing(`is refused (${refusal}): ${bars[refusal] ?? 'it cannot be used'}`, details)
}
