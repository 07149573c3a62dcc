import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { attachContactLabel as contract } from '@app/shared/contracts/contacts.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { refuseOtherTeam, teamOfAccount } from '../accounts/team-of-account.ts'
import type { App } from '../app.ts'
import { holdLabel } from '../labels/labels.ts'
import { lockContacts, setLabel } from './set-label.ts'

export const attachContactLabel: Handler<App, typeof contract> = (app, { params, body }, caller) =>
  once(app, contract, caller, async (tx): Promise<Answer<typeof contract>> => {
    const { phone_number_id: phoneNumberId, id } = params
    const origin = { ...caller, phoneNumberId }
    const label = await holdLabel(tx, caller.organizationId, body.label_id, 'label_id')
    const teamId = await teamOfAccount(tx, origin)
    const ids = await lockContacts(tx, origin, [id])
    if (ids.length === 0) throw notFound()
    refuseOtherTeam(label.teamId, teamId)
    await setLabel(tx, origin, { labelId: body.label_id, operation: 'attach' }, ids)
    return { contact_id: id, label_id: body.label_id, attached: true }
  })
