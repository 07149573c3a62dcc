import type { SetupLink } from '@app/shared/contracts/customers.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import { uriOf } from '@app/shared/values/web-address.ts'
import type { z } from 'zod'
import { customerOf } from '../customers/customers.ts'

type Shown = z.input<typeof SetupLink>

export interface LinkRow {
  id: string
  customerId: string
  status: Shown['status']
  tokenLast4: string
  successRedirectUrl: string | null
  failureRedirectUrl: string | null
  expiresAt: Date
  consumedAt: Date | null
  accountId: string | null
  createdAt: Date
}

/** When the customer of `setup_links l` was archived. */
const archivedAt = (sql: Sql | TransactionSql) => sql`
  (select archived_at from ${customerOf(sql, sql`l.customer_id`)} c)
`

/**
 * The status of `setup_links l` now: nobody has to note that a link has expired, or that it was revoked with its customer, which was
 * `archived` then.
 */
export const statusNow = (sql: Sql | TransactionSql, archived: Fragment) => sql`
  case when l.status <> 'active' then l.status when l.expires_at <= coalesce(${archived}, now()) then 'expired'
    when ${archived} is not null then 'revoked' else 'active' end
`

/** The columns of a LinkRow, from `setup_links l`. */
export const linkColumns = (sql: Sql | TransactionSql, archived = archivedAt(sql)) => sql`
  l.id, l.customer_id, ${statusNow(sql, archived)} as status, l.token_last4, l.success_redirect_url, l.failure_redirect_url,
  l.expires_at, l.consumed_at, l.account_id, l.created_at
`

export const toSetupLink = (row: LinkRow): Shown => ({
  id: row.id,
  object: 'customer_setup_link',
  customer_id: row.customerId,
  status: row.status,
  token_last4: row.tokenLast4,
  expires_at: row.expiresAt.toISOString(),
  consumed_at: row.consumedAt?.toISOString() ?? null,
  success_redirect_url: row.successRedirectUrl,
  failure_redirect_url: row.failureRedirectUrl,
  created_at: row.createdAt.toISOString(),
})

export const redirectOf = (url: string | null | undefined): string | null => (url ? uriOf(url) : null)
