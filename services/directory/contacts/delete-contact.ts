import type { Handler } from '@app/shared/api/contract.ts'
import type { deleteContact as contract } from '@app/shared/contracts/contacts.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { touchConversations } from '../conversations/touch-conversations.ts'
import { forgetWords } from './address-book-words.ts'
import { forgetContacts } from './forget-contacts.ts'
import { lockContacts } from './set-label.ts'

export const deleteContact: Handler<App, typeof contract> = async (app, { params }, { organizationId }) => {
  const { phone_number_id: phoneNumberId, id } = params
  const deleting = app.sql.begin(async (tx) => {
    await forgetWords(tx, { organizationId, phoneNumberId }, id)
    const ids = await lockContacts(tx, { organizationId, phoneNumberId }, [id])
    if (ids.length === 0) throw notFound()
    await forgetContacts(tx, organizationId, ids)
    await touchConversations(tx, organizationId, ids)
  })
  await deleting.finally(() => app.tellChanged([id]))
  return { id, object: 'contact', deleted: true }
}
