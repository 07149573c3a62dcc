import type { Handler } from '@app/shared/contract.ts'
import { listContacts as contract } from '@app/shared/contracts/directory.ts'
import type { Sql } from '@app/shared/database.ts'
import { timeOf } from '@app/shared/ids.ts'
import { openPage } from '@app/shared/page.ts'
import { notFound } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { accountColumns, contactColumns, type ContactRow, toContact } from './contacts.ts'
import { phoneNumberOf } from '@app/shared/phone-number.ts'

export const listContacts: Handler<App, typeof contract> = async ({ sql, cursorKeys }, { params, query }, caller) => {
  const { organizationId } = caller
  const { phone_number_id: phoneNumberId } = params
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const phoneNumber = query.phone_number === undefined ? null : phoneNumberOf(query.phone_number, 'phone_number')
  const isNamed =
    phoneNumber === null ? sql`` : sql`and c.id in (${namedBy(sql, organizationId, phoneNumberId, phoneNumber)})`
  // By created_at too, though it is the id's own time: the primary key alone would do for an order by id, and lead past
  // all the newer contacts of the organization's other numbers.
  const isAfter = after === null ? sql`` : sql`and (c.created_at, c.id) < (${timeOf(after)}, ${after})`
  // The account's row stands alone when it has no contacts; no row means no such account.
  const rows = await sql<(ContactRow | { id: null })[]>`
    select ${contactColumns(sql)}, ${accountColumns(sql)}
    from accounts a
    left join (
      select ${contactColumns(sql)} from contacts c
      where c.organization_id = ${organizationId} and c.phone_number_id = ${phoneNumberId} and c.deleted_at is null
        ${isAfter} ${isNamed}
      order by c.created_at desc, c.id desc limit ${limit + 1}
    ) c on true
    where a.organization_id = ${organizationId} and a.phone_number_id = ${phoneNumberId}
    order by c.created_at desc, c.id desc
  `
  if (rows.length === 0) throw notFound()
  return page(rows.filter(isContact), toContact, ({ id }) => id)
}

/** The contacts that were given the number, or whose number the platform writes so. */
const namedBy = (sql: Sql, organizationId: string, phoneNumberId: string, phoneNumber: string) => sql`
  select contact_id from identities
  where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
    and (kind = 'phone' and value = ${phoneNumber} or kind = 'wa_id' and value = ${phoneNumber.slice(1)})
`

const isContact = (row: ContactRow | { id: null }): row is ContactRow => row.id !== null
