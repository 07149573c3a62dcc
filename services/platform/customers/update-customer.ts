import { isDeepStrictEqual } from 'node:util'
import type { Handler, Input } from '@app/shared/api/contract.ts'
import { customerUpdated, type updateCustomer as contract } from '@app/shared/contracts/customers.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { refuseBarred } from '../organizations/bar.ts'
import { changeCustomer } from './change-customer.ts'
import { customerColumns, type CustomerRow, emitCustomer, toCustomer } from './customers.ts'

type Changes = Input<typeof contract>['body']

export const updateCustomer: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { customer, states } = await changeCustomer(app, params.id, caller, async (tx, before) => {
    await refuseBarred(tx, caller.organizationId)
    if (before.status === 'archived') throw new Problem('customer_archived')
    const wanted = withChanges(before, body)
    if (isDeepStrictEqual(wanted, before)) return before
    const after = await write(tx, wanted)
    await emitCustomer(tx, customerUpdated, after, caller)
    return after
  })
  // All of them, changed or not: the same call before this one may have been cut off here.
  if (body.name !== undefined || body.status !== undefined) await tellStates(app, states, caller)
  return toCustomer(customer)
}

const withChanges = (before: CustomerRow, { name, email, metadata, status }: Changes): CustomerRow => ({
  ...before,
  name: name ?? before.name,
  email: email === undefined ? before.email : email,
  metadata: metadata === undefined ? before.metadata : (metadata ?? {}),
  status: status ?? before.status,
})

async function write(tx: TransactionSql, { organizationId, id, name, email, metadata, status }: CustomerRow) {
  const [row] = await tx<[CustomerRow]>`
    update customers set name = ${name}, email = ${email}, metadata = ${JSON.stringify(metadata)}::text::jsonb,
      status = ${status}, updated_at = statement_timestamp()
    where organization_id = ${organizationId} and id = ${id}
    returning ${tx(customerColumns)}
  `
  return row
}
