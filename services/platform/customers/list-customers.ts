import type { Handler } from '@app/shared/api/contract.ts'
import { listCustomers as contract } from '@app/shared/contracts/customers.ts'
import { openPage } from '@app/shared/api/page.ts'
import type { App } from '../app.ts'
import { customerColumns, type CustomerRow, toCustomer } from './customers.ts'

/**
 * A search reads all customers: measured, up to 3 s for 20,000 with long names. So one organization's wait for each other: they
 * would take all connections, through which also everybody's keys are looked up.
 */
export const listCustomers: Handler<App, typeof contract> = (app, input, caller) =>
  (input.query.search === undefined ? app.readInTurn : app.searchInTurn)(caller, () => list(app, input, caller))

const list: Handler<App, typeof contract> = async ({ sql, cursorKeys }, { query }, caller) => {
  const { status, team_id: teamId, search } = query
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query)
  const part = `%${search?.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
  // The indexes with status or team are in that collation.
  const id = status === undefined && teamId === undefined ? sql`id` : sql`id collate "POSIX"`
  const rows = await sql<CustomerRow[]>`
    select ${sql(customerColumns)} from customers
    where organization_id = ${caller.organizationId}
      ${status === undefined ? sql`` : sql`and status = ${status}`}
      ${teamId === undefined ? sql`` : sql`and team_id = ${teamId}`}
      ${search === undefined ? sql`` : sql`and (name ilike ${part} or email ilike ${part})`}
      ${after === null ? sql`` : sql`and ${id} < ${after}`}
    order by ${id} desc limit ${limit + 1}
  `
  return page(rows, toCustomer, ({ id }) => id)
}
