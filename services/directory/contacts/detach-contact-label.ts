import type { Handler } from '@app/shared/api/contract.ts'
import type { detachContactLabel as contract } from '@app/shared/contracts/contacts.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { holdLabel } from '../labels/labels.ts'
import { lockContacts, setLabel } from './set-label.ts'

export const detachContactLabel: Handler<App, typeof contract> = async ({ sql, relay }, { params }, caller) => {
  const { phone_number_id: phoneNumberId, id, label_id: labelId } = params
  const origin = { ...caller, phoneNumberId }
  await sql.begin(async (tx) => {
    await holdLabel(tx, caller.organizationId, labelId)
    const ids = await lockContacts(tx, origin, [id])
    if (ids.length === 0) throw notFound()
    await setLabel(tx, origin, { labelId, operation: 'detach' }, ids)
  })
  relay.wake()
  return { contact_id: id, label_id: labelId, attached: false }
}
