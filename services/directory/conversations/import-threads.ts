import type { Handler } from '@app/shared/api/contract.ts'
import type { importThreads as contract } from '@app/shared/contracts/directory-changes.ts'
import type { App } from '../app.ts'
import { personOf } from '../contacts/sender.ts'
import { findParties } from './find-parties.ts'
import { noteSentMessages } from './note-sent-messages.ts'

export const importThreads: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { organizationId, traceparent } = caller
  const origin = { organizationId, traceparent, phoneNumberId: params.phone_number_id }
  const threads = await Promise.all(
    body.threads.map(async ({ last_message_at: at, ...names }) => {
      const { contact, conversation } = await findParties(app, personOf(names, new Date(at)), origin, { isTold: false })
      return {
        at,
        conversation: { id: conversation.id, status: conversation.status, assigned_to: conversation.assignedTo },
        contact: { id: contact.id, phone_number: contact.phoneNumber, name: contact.name },
      }
    }),
  )
  await noteSentMessages(
    app.sql,
    threads.map(({ at, conversation }) => ({
      organization_id: organizationId,
      conversation_id: conversation.id,
      sent_at: at,
    })),
  )
  return { threads }
}
