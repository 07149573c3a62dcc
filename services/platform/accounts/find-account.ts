import type { Handler } from '@app/shared/api/contract.ts'
import type { findAccount as contract } from '@app/shared/contracts/platform.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'

interface Row {
  id: string
  customerId: string | null
}

/** A number that was detached stays readable to the organization that had it. */
export const findAccount: Handler<App, typeof contract> = async ({ sql }, { params }, { organizationId }) => {
  const { phone_number_id } = params
  const [row] = await sql<Row[]>`
    select id, customer_id from accounts
    where organization_id = ${organizationId} and phone_number_id = ${phone_number_id}
  `
  if (!row) throw notFound()
  return { account_id: row.id, phone_number_id, customer_id: row.customerId }
}
