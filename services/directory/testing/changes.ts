import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Input } from '@app/shared/api/contract.ts'
import type * as contracts from '@app/shared/contracts/directory-changes.ts'
import type { App } from '../app.ts'
import { changeIdentity } from '../contacts/change-identity.ts'
import { importContacts } from '../contacts/import-contacts.ts'
import { recordPreferences } from '../contacts/record-preferences.ts'
import { importThreads } from '../conversations/import-threads.ts'

type Identity = Input<typeof contracts.changeIdentity>['body']
type Names = Partial<Identity['current']>

/** What messaging tells of people beside their messages, on a number. */
export function telling(app: App, number: { organizationId: string; phoneNumberId: string }) {
  const caller = systemCaller(number.organizationId)
  const asked = <B>(body: B) => ({ params: { phone_number_id: number.phoneNumberId }, query: {}, body })
  const namesOf = ({ wa_id = null, bsuid = null, parent_bsuid = null }: Names) => ({ wa_id, bsuid, parent_bsuid })
  return {
    preferences: (preferences: Input<typeof contracts.recordPreferences>['body']['preferences']) =>
      recordPreferences(app, asked({ preferences }), caller),
    change: (id: string, previous: Names, current: Names, at = new Date().toISOString()) =>
      changeIdentity(app, asked({ id, previous: namesOf(previous), current: namesOf(current), at }), caller),
    contacts: (contacts: Input<typeof contracts.importContacts>['body']['contacts']) =>
      importContacts(app, asked({ contacts }), caller),
    threads: (threads: Input<typeof contracts.importThreads>['body']['threads']) =>
      importThreads(app, asked({ threads }), caller),
  }
}
