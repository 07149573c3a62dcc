import type { Handler } from '@app/shared/contract.ts'
import type { getContact as contract } from '@app/shared/contracts/directory.ts'
import { notFound } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { accountColumns, contactColumns, type ContactRow, toContact } from './contacts.ts'

export const getContact: Handler<App, typeof contract> = async ({ sql }, { params }, { organizationId }) => {
  const [row] = await sql<ContactRow[]>`
    select ${contactColumns(sql)}, ${accountColumns(sql)}
    from contacts c
    join accounts a on a.organization_id = c.organization_id and a.phone_number_id = c.phone_number_id
    where c.organization_id = ${organizationId} and c.phone_number_id = ${params.phone_number_id}
      and c.id = ${params.id} and c.deleted_at is null
  `
  if (!row) throw notFound()
  return toContact(row)
}
