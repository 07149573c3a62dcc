import type { Handler } from '@app/shared/contract.ts'
import type { deleteContact as contract } from '@app/shared/contracts/contacts.ts'
import { notFound } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { rememberStop } from './remembered-stops.ts'
import { touchConversations } from '../conversations/touch-conversations.ts'

/** Its names are free again, and nothing personal is kept but, as hashes, that it wanted no marketing; its conversations stay. */
export const deleteContact: Handler<App, typeof contract> = async (app, { params }, { organizationId }) => {
  const { phone_number_id: phoneNumberId, id } = params
  await app.sql.begin(async (tx) => {
    await rememberStop(tx, organizationId, id)
    const deleted = await tx`
      update contacts set deleted_at = now(), updated_at = now(), phone_number = null, wa_id = null, bsuid = null,
        parent_bsuid = null, username = null, name = null, email = null, metadata = null
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and id = ${id}
        and deleted_at is null
      returning id
    `
    if (deleted.length === 0) throw notFound()
    await tx`delete from identities where organization_id = ${organizationId} and contact_id = ${id}`
    await tx`delete from contact_labels where organization_id = ${organizationId} and contact_id = ${id}`
    await touchConversations(tx, organizationId, id)
  })
  app.tellChanged([id])
  return { id, object: 'contact', deleted: true }
}
