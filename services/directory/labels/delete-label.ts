import type { Handler } from '@app/shared/api/contract.ts'
import type { deleteLabel as contract } from '@app/shared/contracts/labels.ts'
import { beginSurely } from '@app/shared/database/begin-surely.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'

/** From here on nobody sees the label or attaches it; `detachDeletedLabels` does the rest, also after a crash. */
export const deleteLabel: Handler<App, typeof contract> = async ({ sql, detaching }, { params }, caller) => {
  const hide = (tx: TransactionSql) => tx`
    update labels set deleted_at = now(), updated_at = now()
    where organization_id = ${caller.organizationId} and id = ${params.id} and deleted_at is null
    returning id
  `
  // Whoever repeats one whose answer was lost finds no label, and wakes nobody.
  const deleted = await beginSurely(sql, hide, { patienceMs: caller.deadline - performance.now() })
  if (deleted.length === 0) throw notFound()
  detaching.wake()
  return { id: params.id, object: 'label', deleted: true }
}
