import type { Handler } from '@app/shared/api/contract.ts'
import { listSetupLinks as contract } from '@app/shared/contracts/customers.ts'
import { openPage } from '@app/shared/api/page.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { linkColumns, type LinkRow, statusNow, toSetupLink } from './setup-links.ts'

/**
 * A list by status reads all links of a customer: a tenth of a second for 200,000, as measured. So such lists of one organization wait
 * for each other. Else they could take all connections, and the look-ups of everybody's keys would wait for one.
 */
export const listSetupLinks: Handler<App, typeof contract> = (app, input, caller) =>
  (input.query.status === undefined ? app.readInTurn : app.searchInTurn)(caller, () => list(app, input, caller))

const list: Handler<App, typeof contract> = async ({ sql, cursorKeys }, { params, query }, caller) => {
  const { organizationId } = caller
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const [customer] = await sql<{ archivedAt: Date | null }[]>`
    select archived_at from customers where organization_id = ${organizationId} and id = ${params.id}
  `
  if (!customer) throw notFound()
  const archived = sql`${customer.archivedAt}::timestamptz`
  const rows = await sql<LinkRow[]>`
    select ${linkColumns(sql, archived)} from setup_links l
    where l.organization_id = ${organizationId} and l.customer_id = ${params.id}
      ${query.status === undefined ? sql`` : sql`and ${statusNow(sql, archived)} = ${query.status}`}
      ${after === null ? sql`` : sql`and l.id < ${after}`}
    order by l.id desc limit ${limit + 1}
  `
  return page(rows, toSetupLink, ({ id }) => id)
}
