import type { Handler } from '@app/shared/api/contract.ts'
import type { getContact as contract } from '@app/shared/contracts/contacts.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { findContact, toContact } from './contacts.ts'

export const getContact: Handler<App, typeof contract> = async ({ sql }, { params }, { organizationId }) => {
  const row = await findContact(sql, { organizationId, phoneNumberId: params.phone_number_id }, params.id)
  if (!row) throw notFound()
  return toContact(row)
}
