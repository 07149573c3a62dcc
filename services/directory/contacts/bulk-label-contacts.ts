import type { Answer, Caller, Handler } from '@app/shared/api/contract.ts'
import { bulkLabelContacts as contract } from '@app/shared/contracts/contacts.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { idOf } from '@app/shared/values/ids.ts'
import { teamOfAccount } from '../accounts/team-of-account.ts'
import type { App } from '../app.ts'
import { holdLabel } from '../labels/labels.ts'
import { lockContacts, setLabel } from './set-label.ts'

const contactId = idOf('ctc')

type Input = Parameters<Handler<App, typeof contract>>[1]

export const bulkLabelContacts: Handler<App, typeof contract> = (app, input, caller) =>
  app.bulkInTurn(caller, () => once(app, contract, caller, (tx) => label(tx, input, caller)))

async function label(tx: TransactionSql, { params, body }: Input, caller: Caller): Promise<Answer<typeof contract>> {
  const { contact_ids: givenIds, label_id: labelId, operation } = body
  const origin = { ...caller, phoneNumberId: params.phone_number_id }
  const ids = [...new Set(givenIds)]
  const wellFormed = ids.filter((id) => contactId.safeParse(id).success)
  const { teamId: labelTeamId } = await holdLabel(tx, caller.organizationId, labelId, 'label_id')
  const teamId = await teamOfAccount(tx, origin)
  const own = await lockContacts(tx, origin, wellFormed)
  const skipped = ids.length - own.length
  if (labelTeamId !== teamId) return { applied: 0, skipped_cross_org: skipped, skipped_team_mismatch: own.length }
  await setLabel(tx, origin, { labelId, operation }, own)
  return { applied: own.length, skipped_cross_org: skipped, skipped_team_mismatch: 0 }
}
