import { call, wasNobodyThere } from '@app/shared/bus/ask.ts'
import type { Caller } from '@app/shared/api/contract.ts'
import { findAccounts, listAccounts } from '@app/shared/contracts/platform.ts'
import { invalidField } from '@app/shared/api/problem.ts'
import type { Service } from '@app/shared/service/service.ts'

/**
 * The numbers of a filter, each once. Those that are not the organization's, connected or not, are refused by their place in
 * the list.
 */
export async function ownNumbers<T extends null | undefined>(
  service: Service,
  phoneNumberIds: string[] | T,
  caller: Caller,
): Promise<string[] | T> {
  if (!phoneNumberIds) return phoneNumberIds
  await refuseForeign(service, phoneNumberIds, caller)
  return [...new Set(phoneNumberIds)]
}

async function refuseForeign(service: Service, phoneNumberIds: string[], caller: Caller) {
  if (phoneNumberIds.length === 0) return
  const own = new Set(await ownOf(service, phoneNumberIds, caller))
  const foreign = phoneNumberIds.findIndex((id) => !own.has(id))
  if (foreign === -1) return
  throw invalidField(`phone_number_ids[${foreign}]`, `phone_number_ids[${foreign}] is not a number of yours.`)
}

async function ownOf(service: Service, phoneNumberIds: string[], caller: Caller) {
  try {
    const body = { phone_number_ids: phoneNumberIds }
    return (await call(service, findAccounts, { body }, caller)).phone_number_ids
  } catch (err) {
    if (!wasNobodyThere(err)) throw err
    // Platform of the version before, while it is replaced.
    const { data } = await call(service, listAccounts, { query: { status: 'all' } }, caller)
    return data.map((account) => account.phone_number_id)
  }
}
