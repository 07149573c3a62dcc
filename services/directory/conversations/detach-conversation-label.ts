import type { Handler } from '@app/shared/api/contract.ts'
import type { detachConversationLabel as contract } from '@app/shared/contracts/conversations.ts'
import type { App } from '../app.ts'
import { holdLabel } from '../labels/labels.ts'
import { lockLive } from './conversations.ts'

export const detachConversationLabel: Handler<App, typeof contract> = async ({ sql }, { params }, caller) => {
  const { organizationId } = caller
  const { phone_number_id: phoneNumberId, label_id: labelId } = params
  return sql.begin(async (tx) => {
    await holdLabel(tx, organizationId, labelId)
    const { id } = await lockLive(tx, { organizationId, phoneNumberId }, params.id)
    await tx`
      delete from conversation_labels
      where organization_id = ${organizationId} and conversation_id = ${id} and label_id = ${labelId}
    `
    return { conversation_id: id, label_id: labelId, attached: false }
  })
}
