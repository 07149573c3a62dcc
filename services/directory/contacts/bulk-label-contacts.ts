import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { bulkLabelContacts as contract } from '@app/shared/contracts/contacts.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { idOf } from '@app/shared/values/ids.ts'
import { teamOfAccount } from '../accounts/team-of-account.ts'
import type { App } from '../app.ts'
import { holdLabel } from '../labels/labels.ts'
import { lockContacts, setLabel } from './set-label.ts'

const contactId = idOf('ctc')

export const bulkLabelContacts: Handler<App, typeof contract> = (app, { params, body }, caller) =>
  once(app, contract, caller, async (tx): Promise<Answer<typeof contract>> => {
    const { contact_ids: givenIds, label_id: labelId, operation } = body
    const origin = { ...caller, phoneNumberId: params.phone_number_id }
    const ids = [...new Set(givenIds)]
    const wellFormed = ids.filter((id) => contactId.safeParse(id).success)
    const label = await holdLabel(tx, caller.organizationId, labelId)
    const teamId = await teamOfAccount(tx, origin)
    const own = await lockContacts(tx, origin, wellFormed)
    const skipped = ids.length - own.length
    if (label.teamId !== teamId) return { applied: 0, skipped_cross_org: skipped, skipped_team_mismatch: own.length }
    await setLabel(tx, origin, { labelId, operation }, own)
    return { applied: own.length, skipped_cross_org: skipped, skipped_team_mismatch: 0 }
  })
