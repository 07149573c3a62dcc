import type { Handler } from '@app/shared/api/contract.ts'
import type { getCustomer as contract } from '@app/shared/contracts/customers.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { accountColumns, type AccountRow, toAccount } from '../accounts/accounts.ts'
import type { App } from '../app.ts'
import { customerColumns, type CustomerRow, toCustomer } from './customers.ts'

export const getCustomer: Handler<App, typeof contract> = (app, input, caller) =>
  app.readInTurn(caller, () => get(app, input, caller))

const get: Handler<App, typeof contract> = async ({ sql }, { params }, { organizationId }) => {
  const [row] = await sql<CustomerRow[]>`
    select ${sql(customerColumns)} from customers where organization_id = ${organizationId} and id = ${params.id}
  `
  if (!row) throw notFound()
  const accounts = await sql<AccountRow[]>`
    select ${sql(accountColumns)} from accounts
    where organization_id = ${organizationId} and customer_id = ${params.id} order by created_at desc, id desc
  `
  return { ...toCustomer(row), accounts: accounts.map(toAccount) }
}
