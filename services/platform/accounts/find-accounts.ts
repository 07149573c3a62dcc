import type { Handler } from '@app/shared/api/contract.ts'
import type { findAccounts as contract } from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'

/** As `findAccount`, of many. */
export const findAccounts: Handler<App, typeof contract> = async ({ sql }, { body }, { organizationId }) => {
  const rows = await sql<{ phoneNumberId: string }[]>`
    select phone_number_id from accounts
    where organization_id = ${organizationId} and phone_number_id = any(${body.phone_number_ids})
  `
  return { phone_number_ids: rows.map(({ phoneNumberId }) => phoneNumberId) }
}
