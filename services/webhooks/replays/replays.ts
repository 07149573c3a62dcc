import type { WebhookReplay } from '@app/shared/contracts/webhook-replays.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { z } from 'zod'

export interface ReplayRow {
  id: string
  subscriptionId: string
  status: 'queued' | 'running' | 'completed' | 'cancelled'
  matched: number
  enqueued: number
  succeeded: number
  failed: number
  nextSince: Date | null
  createdAt: Date
  finishedAt: Date | null
}

/** The columns of a ReplayRow. */
export const replayColumns = (sql: Sql | TransactionSql) => sql`
  id, subscription_id, status, matched, enqueued, succeeded, failed, next_since, created_at, finished_at
`

/** Throws when there is none. */
export async function findReplay(sql: Sql, organizationId: string, id: string): Promise<ReplayRow> {
  const [row] = await sql<ReplayRow[]>`
    select ${replayColumns(sql)} from replays where organization_id = ${organizationId} and id = ${id}
  `
  if (!row) throw notFound()
  return row
}

export const toReplay = (row: ReplayRow): z.input<typeof WebhookReplay> => ({
  id: row.id,
  object: 'webhook_replay',
  subscription_id: row.subscriptionId,
  status: row.status,
  matched: row.matched,
  enqueued: row.enqueued,
  succeeded: row.succeeded,
  failed: row.failed,
  truncated: row.nextSince !== null,
  next_since: row.nextSince?.toISOString() ?? null,
  created_at: row.createdAt.toISOString(),
  finished_at: row.finishedAt?.toISOString() ?? null,
})
