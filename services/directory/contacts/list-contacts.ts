import type { Handler } from '@app/shared/contract.ts'
import { listContacts as contract } from '@app/shared/contracts/directory.ts'
import { timeOf } from '@app/shared/ids.ts'
import { openPage } from '@app/shared/page.ts'
import { notFound } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { accountColumns, contactColumns, type ContactRow, toContact } from './contacts.ts'
import { identitiesOfPhone } from './identities.ts'
import { phoneNumberOf } from './phone-number.ts'

export const listContacts: Handler<App, typeof contract> = async ({ sql, cursorKeys }, { params, query }, caller) => {
  const { organizationId } = caller
  const { phone_number_id: phoneNumberId } = params
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const names =
    query.phone_number === undefined ? null : identitiesOfPhone(phoneNumberOf(query.phone_number, 'phone_number'))
  const isNamed = sql`
    and c.id in (
      select i.contact_id
      from json_to_recordset(${JSON.stringify(names)}::text::json) as k(kind text, value text)
      join identities i on i.organization_id = ${organizationId} and i.phone_number_id = ${phoneNumberId}
        and i.kind = k.kind and i.value = k.value
    )
  `
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
        ${isAfter} ${names ? isNamed : sql``}
      order by c.created_at desc, c.id desc limit ${limit + 1}
    ) c on true
    where a.organization_id = ${organizationId} and a.phone_number_id = ${phoneNumberId}
    order by c.created_at desc, c.id desc
  `
  if (rows.length === 0) throw notFound()
  return page(rows.filter(isContact), toContact, ({ id }) => id)
}

const isContact = (row: ContactRow | { id: null }): row is ContactRow => row.id !== null
