import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainKey as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import type { OrganizationRow } from '../organizations/organizations.ts'
import { tierOf } from '../organizations/rate-tiers.ts'
import { lastCallOf, recentCallsOf } from './calls-of-key.ts'
import { barsOf } from './explain-organization.ts'

/** What is left of its budget the gateways know alone: each answer says it (`RateLimit`). */
export const explainKey: Handler<App, typeof contract> = async (app, { body: { id } }) => {
  const { sql } = app
  const key = await find(sql, id)
  if (!key) throw notFound()
  const [last, recent] = await Promise.all([lastCallOf(sql, key), recentCallsOf(sql, id)])
  const { name: tier, ...budgets } = tierOf(app.rateTiers, key.tier)
  const now = standing(wordsOf(key), {
    tier,
    ...budgets,
    ...(key.expiresAt && { expires_at: key.expiresAt }),
    last_15_minutes: recent,
  })
  return { history: [...pastOf(key), last, now] }
}

interface Key extends Pick<OrganizationRow, 'tier' | 'features' | 'subscription'> {
  organizationId: string
  id: string
  last4: string
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
  isExpired: boolean
}

async function find(sql: Sql, id: string) {
  const [found] = await sql<Key[]>`
    select k.organization_id, k.id, k.last4, k.created_at, k.expires_at, k.revoked_at,
      coalesce(k.expires_at <= now(), false) as is_expired, o.tier, o.features, o.subscription
    from api_keys k join organizations o on o.id = k.organization_id where k.id = ${id}
  `
  return found
}

function pastOf({ organizationId, last4, createdAt, expiresAt, revokedAt, isExpired }: Key): Moment[] {
  return [
    momentAt(createdAt, 'was issued', { organization_id: organizationId, last4 }),
    ...(expiresAt && isExpired ? [momentAt(expiresAt, 'expired')] : []),
    ...(revokedAt ? [momentAt(revokedAt, 'was revoked')] : []),
  ]
}

function wordsOf(key: Key): string {
  const { revokedAt, isExpired, expiresAt } = key
  if (revokedAt) return 'is revoked for good: requests with it are refused (revoked_api_key)'
  if (isExpired) return 'is expired: requests with it are refused (expired_api_key)'
  const until = expiresAt ? ` until ${expiresAt.toISOString()}` : ''
  return [`is good${until}`, ...barsOf(key)].join('; ')
}
