import type { Handler } from '@app/shared/api/contract.ts'
import type { getMessage as contract } from '@app/shared/contracts/messaging.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { shownFiles } from '../media/media.ts'
import { messageColumns, type MessageRow, toMessage } from './messages.ts'

export const getMessage: Handler<App, typeof contract> = async (app, { params }, { organizationId }) => {
  const [row] = await app.sql<MessageRow[]>`
    select ${messageColumns(app.sql)} from messages
    where organization_id = ${organizationId} and phone_number_id = ${params.phone_number_id} and id = ${params.id}
  `
  if (!row) throw notFound()
  const files = await shownFiles(app, organizationId, [row.mediaId])
  return toMessage(row, files.get(row.mediaId))
}
