import type { Label } from '@app/shared/contracts/labels.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { z } from 'zod'

type Shown = z.input<typeof Label>

export interface LabelRow {
  id: string
  name: string
  color: Shown['color']
  teamId: string
  createdAt: Date
  updatedAt: Date
}

export const labelColumns = (sql: Sql) => sql`id, name, color, team_id, created_at, updated_at`

export const toLabel = (row: LabelRow): Shown => ({
  id: row.id,
  object: 'label',
  name: row.name,
  color: row.color,
  team_id: row.teamId,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** A label that is there and stays until the transaction ends, for attaching it; else `resource_not_found`, of the field that has its id. */
export async function holdLabel(
  tx: TransactionSql,
  organizationId: string,
  id: string,
  param?: string,
): Promise<{ teamId: string }> {
  const [label] = await tx<{ teamId: string }[]>`
    select team_id from labels where organization_id = ${organizationId} and id = ${id} and deleted_at is null for share
  `
  if (!label) throw notFound(param)
  return label
}

export const labelExists = () => new Problem('label_already_exists', { param: 'name' })
