import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { explainAccounts as contract } from '@app/shared/contracts/explain.ts'
import type { App } from '../app.ts'
import { accountsWhere, momentsOf } from './accounts.ts'

/** One number may be, or have been, of several organizations. */
export const explainAccounts: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const accounts = await accountsWhere(
    sql,
    id.startsWith('acc_') ? sql`a.id = ${id}` : sql`(a.phone_number_id = ${id} or a.business_account_id = ${id})`,
  )
  if (accounts.length === 0) throw notFound()
  const numbers = accounts.flatMap(({ phoneNumberId }) => phoneNumberId ?? [])
  return { phone_number_ids: [...new Set(numbers)], history: accounts.flatMap(momentsOf) }
}
