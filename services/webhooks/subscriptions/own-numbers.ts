import { call } from '@app/shared/bus/ask.ts'
import type { Caller } from '@app/shared/api/contract.ts'
import { listAccounts } from '@app/shared/contracts/platform.ts'
import { invalidField } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'

/** Numbers that are not the organization's, connected or not, are refused by their place in the list. */
export async function refuseForeignNumbers(app: App, phoneNumberIds: string[], caller: Caller) {
  if (phoneNumberIds.length === 0) return
  const { data } = await call(app, listAccounts, { query: { status: 'all' } }, caller)
  const own = new Set(data.map((account) => account.phone_number_id))
  const foreign = phoneNumberIds.findIndex((id) => !own.has(id))
  if (foreign === -1) return
  throw invalidField(`phone_number_ids[${foreign}]`, `phone_number_ids[${foreign}] is not a number of yours.`)
}
