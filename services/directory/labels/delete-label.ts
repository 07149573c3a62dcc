import type { Handler } from '@app/shared/api/contract.ts'
import type { deleteLabel as contract } from '@app/shared/contracts/labels.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'

/** From here on nobody sees the label or attaches it; `detachDeletedLabels` does the rest, after a crash too. */
export const deleteLabel: Handler<App, typeof contract> = async ({ sql, detaching }, { params }, caller) => {
  const deleted = await sql`
    update labels set deleted_at = now(), updated_at = now()
    where organization_id = ${caller.organizationId} and id = ${params.id} and deleted_at is null
    returning id
  `
  if (deleted.length === 0) throw notFound()
  detaching.wake()
  return { id: params.id, object: 'label', deleted: true }
}
