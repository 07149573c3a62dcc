import type { Handler } from '@app/shared/api/contract.ts'
import type { getLabel as contract } from '@app/shared/contracts/labels.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { labelColumns, type LabelRow, toLabel } from './labels.ts'

export const getLabel: Handler<App, typeof contract> = async ({ sql }, { params }, { organizationId }) => {
  const [row] = await sql<LabelRow[]>`
    select ${labelColumns(sql)} from labels
    where organization_id = ${organizationId} and id = ${params.id} and deleted_at is null
  `
  if (!row) throw notFound()
  return toLabel(row)
}
