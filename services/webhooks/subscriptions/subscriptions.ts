import type { WebhookSubscription } from '@app/shared/contracts/webhooks.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { z } from 'zod'

export interface SubscriptionRow {
  id: string
  url: string
  description: string | null
  events: string[]
  phoneNumberIds: string[] | null
  status: 'active' | 'paused' | 'disabled'
  disabledReason: string | null
  createdAt: Date
  updatedAt: Date
  failures: number
  /** Newest first, without the expired. Times in ms. */
  secrets: { id: string; created: number; expires: number | null }[]
}

/** Throws when there is none, of the field that has its id. */
export async function findSubscription(
  sql: Sql | TransactionSql,
  organizationId: string,
  id: string,
  param?: string,
): Promise<SubscriptionRow> {
  const [row] = await sql<SubscriptionRow[]>`
    select ${subscriptionColumns(sql)} from subscriptions s
    where s.organization_id = ${organizationId} and s.id = ${id}
  `
  if (!row) throw notFound(param)
  return row
}

/**
 * The subscription, with its row locked until the commit; throws when there is none. Locked first and read then: a statement
 * that waited for the lock would still see the secrets as they were before it waited.
 */
export async function lockSubscription(
  tx: TransactionSql,
  organizationId: string,
  id: string,
): Promise<SubscriptionRow> {
  await tx`select id from subscriptions where organization_id = ${organizationId} and id = ${id} for no key update`
  return findSubscription(tx, organizationId, id)
}

/** Throws `webhook_subscription_disabled`: nothing of a disabled subscription changes until it is enabled. */
export function refuseDisabled({ status }: Pick<SubscriptionRow, 'status'>): void {
  if (status === 'disabled') throw new Problem('webhook_subscription_disabled')
}

/** The columns of a SubscriptionRow, from `subscriptions s`. */
export const subscriptionColumns = (sql: Sql | TransactionSql) => sql`
  s.id, s.url, s.description, s.events, s.phone_number_ids, s.status, s.disabled_reason, s.created_at, s.updated_at,
  coalesce((select failures from lanes where lanes.id = s.id), 0) as failures,
  (
    select coalesce(json_agg(json_build_object('id', k.id, 'created', extract(epoch from k.created_at) * 1000,
      'expires', extract(epoch from k.expires_at) * 1000) order by k.id desc), '[]')
    from secrets k where k.subscription_id = s.id and (k.expires_at is null or k.expires_at > now())
  ) as secrets
`

export const toSubscription = (row: SubscriptionRow): z.input<typeof WebhookSubscription> => ({
  id: row.id,
  object: 'webhook_subscription',
  url: row.url,
  description: row.description,
  events: row.events,
  phone_number_ids: row.phoneNumberIds,
  status: row.status,
  disabled_reason: row.disabledReason,
  consecutive_failures: row.failures,
  secrets: row.secrets.map(({ id, created, expires }) => ({
    id,
    created_at: iso(created),
    expires_at: expires === null ? null : iso(expires),
  })),
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

const iso = (ms: number) => new Date(ms).toISOString()
