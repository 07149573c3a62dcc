import type { Handler } from '@app/shared/api/contract.ts'
import type { listAccounts as contract } from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'
import { accountColumns, type AccountRow, toAccount } from './accounts.ts'

/**
 * A list of 10,000 numbers takes some 40 ms, most of it on the thread on which everybody's keys are looked up, too. So lists of one
 * organization wait for each other.
 */
export const listAccounts: Handler<App, typeof contract> = (app, { query }, caller) =>
  app.listInTurn(caller, async () => {
    const { sql } = app
    const { status, customer_id: customerId } = query
    const rows = await sql<AccountRow[]>`
      select ${sql(accountColumns)} from accounts
      where organization_id = ${caller.organizationId}
        ${status === 'all' ? sql`` : sql`and status = 'connected'`}
        ${customerId === undefined ? sql`` : sql`and customer_id = ${customerId}`}
      order by created_at desc, id desc
    `
    return { data: rows.map(toAccount), has_more: false, next_cursor: null }
  })
