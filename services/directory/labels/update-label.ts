import type { Handler } from '@app/shared/api/contract.ts'
import type { updateLabel as contract } from '@app/shared/contracts/labels.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { labelColumns, labelExists, type LabelRow, toLabel } from './labels.ts'

export const updateLabel: Handler<App, typeof contract> = async ({ sql }, { params, body }, { organizationId }) => {
  const { name = null, color = null } = body
  // What stays as it is keeps its updated_at, too. The time is that of the change, not of its beginning: it may have waited for another.
  const [row] = await sql<LabelRow[]>`
    update labels set name = coalesce(${name}, name), color = coalesce(${color}, color),
      updated_at = case when name = coalesce(${name}, name) and color = coalesce(${color}, color) then updated_at else greatest(updated_at, clock_timestamp()) end
    where organization_id = ${organizationId} and id = ${params.id} and deleted_at is null
    returning ${labelColumns(sql)}
  `.catch((err: unknown) => {
    throw isTaken(err) ? labelExists() : err
  })
  if (!row) throw notFound()
  return toLabel(row)
}

const isTaken = (err: unknown) =>
  err instanceof Error && 'constraint_name' in err && err.constraint_name === 'labels_name'
