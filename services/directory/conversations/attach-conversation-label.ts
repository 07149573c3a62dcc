import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { attachConversationLabel as contract } from '@app/shared/contracts/conversations.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { refuseOtherTeam, teamOfAccount } from '../accounts/team-of-account.ts'
import type { App } from '../app.ts'
import { holdLabel } from '../labels/labels.ts'
import { lockLive } from './conversations.ts'

/** Conversations do not show their labels (`message.received` does), so this is no change of theirs, and no event tells of it. */
export const attachConversationLabel: Handler<App, typeof contract> = (app, { params, body }, caller) =>
  once(app, contract, caller, async (tx): Promise<Answer<typeof contract>> => {
    const { organizationId } = caller
    const { label_id: labelId } = body
    const origin = { organizationId, phoneNumberId: params.phone_number_id }
    const label = await holdLabel(tx, organizationId, labelId, 'label_id')
    const { id } = await lockLive(tx, origin, params.id)
    refuseOtherTeam(label.teamId, await teamOfAccount(tx, origin))
    await tx`
      insert into conversation_labels (organization_id, conversation_id, label_id)
      values (${organizationId}, ${id}, ${labelId})
      on conflict do nothing
    `
    return { conversation_id: id, label_id: labelId, attached: true }
  })
