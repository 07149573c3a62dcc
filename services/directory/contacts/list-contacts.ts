import type { Handler } from '@app/shared/api/contract.ts'
import { listContacts as contract } from '@app/shared/contracts/contacts.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { plannedAnew } from '@app/shared/database/planned-anew.ts'
import { openPage } from '@app/shared/api/page.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { accountColumns, contactColumns, type ContactRow, toContact } from './contacts.ts'
import { matchingContacts } from './matching-contacts.ts'

/**
 * A search that is rare itself, but whose pieces are common, reads all contacts that have these pieces: a second for 100,000, as measured.
 * So searches of one organization wait for each other. Else they could take all connections, and other organizations' messages would
 * wait for one.
 */
export const listContacts: Handler<App, typeof contract> = (app, input, caller) =>
  input.query.search === undefined ? list(app, input, caller) : app.searchInTurn(caller, () => list(app, input, caller))

const list: Handler<App, typeof contract> = async ({ sql, cursorKeys }, { params, query }, caller) => {
  const { organizationId } = caller
  const { phone_number_id: phoneNumberId } = params
  const { limit, mostRows, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const { first, second, more } = matchingContacts(sql, { organizationId, phoneNumberId, query, after, rows: mostRows })
  // The account's row stands alone when it has no contacts; no row means no such account.
  const read = (tx: Sql | TransactionSql, contacts: typeof first) => tx<(ContactRow | { id: null })[]>`
    select ${contactColumns(sql)}, ${accountColumns(sql)}
    from accounts a left join (${contacts}) c on true
    where a.organization_id = ${organizationId} and a.phone_number_id = ${phoneNumberId}
    order by c.created_at desc, c.id desc
  `
  const rows = await read(sql, first)
  if (rows.length === 0) throw notFound()
  const isFilled =
    second === undefined || rows.length > limit || (more !== undefined && (await sql`${more}`).length === 0)
  const found = isFilled ? rows : await plannedAnew(sql, (tx) => read(tx, second))
  return page(found.filter(isContact), toContact, ({ id }) => id)
}

const isContact = (row: ContactRow | { id: null }): row is ContactRow => row.id !== null
