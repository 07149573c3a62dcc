import type { Handler } from '@app/shared/api/contract.ts'
import { listCustomers as contract } from '@app/shared/contracts/customers.ts'
import { openPage } from '@app/shared/api/page.ts'
import type { Fragment, Sql } from '@app/shared/database/database.ts'
import { plannedAnew } from '@app/shared/database/planned-anew.ts'
import type { App } from '../app.ts'
import { customerColumns, type CustomerRow, toCustomer } from './customers.ts'

/**
 * A search for something common that the newest do not have reads all customers that have it, and one for less than a piece reads all
 * there are: 2 s for a million, as measured. So searches of one organization wait for each other. Else they could take all connections,
 * and the look-ups of everybody's keys would wait for one.
 */
export const listCustomers: Handler<App, typeof contract> = (app, input, caller) =>
  (input.query.search === undefined ? app.readInTurn : app.searchInTurn)(caller, () => list(app, input, caller))

const list: Handler<App, typeof contract> = async ({ sql, cursorKeys }, { query }, caller) => {
  const { status, team_id: teamId, search } = query
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query)
  // The indexes with status or team are in that collation.
  const id = status === undefined && teamId === undefined ? sql`id` : sql`id collate "POSIX"`
  const which = sql`
    organization_id = ${caller.organizationId}
    ${status === undefined ? sql`` : sql`and status = ${status}`}
    ${teamId === undefined ? sql`` : sql`and team_id = ${teamId}`}
    ${after === null ? sql`` : sql`and ${id} < ${after}`}
  `
  const place = { organizationId: caller.organizationId, which, order: sql`order by ${id} desc`, rows: limit + 1 }
  const rows = await (search === undefined ? inOrder(sql, place) : find(sql, place, search))
  return page(rows, toCustomer, ({ id }) => id)
}

/** Which customers a page is made of, how many, and in which order. */
interface Place {
  organizationId: string
  which: Fragment
  order: Fragment
  rows: number
}

const inOrder = (sql: Sql, { which, order, rows }: Place) =>
  sql<CustomerRow[]>`select ${sql(customerColumns)} from customers where ${which} ${order} limit ${rows}`

/** What is common is found here. */
const amongNewest = 2_000
/** Of `customer_grams`. */
const pieceLength = 3

/** Something rare is found by its pieces. Materialized: else the planner takes it for common, and reads all customers in order. */
async function find(sql: Sql, place: Place, search: string) {
  const { organizationId, which, order, rows } = place
  const part = `%${search.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
  const isFound = sql`(name ilike ${part} or email ilike ${part})`
  const columns = sql(customerColumns)
  const newest = await sql<CustomerRow[]>`
    select ${columns} from (select ${columns} from customers where ${which} ${order} limit ${amongNewest}) c
    where ${isFound} ${order} limit ${rows}
  `
  if (newest.length === rows) return newest
  if (Array.from(search).length < pieceLength) return inOrder(sql, { ...place, which: sql`${which} and ${isFound}` })
  return plannedAnew(
    sql,
    (tx) => tx<CustomerRow[]>`
      with found as materialized (
        select ${columns} from customers
        where ${which} and ${isFound}
          and customer_grams(organization_id, name || ' ' || coalesce(email, '')) @> customer_grams(${organizationId}, ${search})
      )
      select ${columns} from found ${order} limit ${rows}
    `,
  )
}
