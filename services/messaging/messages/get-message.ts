import type { Handler } from '@app/shared/contract.ts'
import type { getMessage as contract } from '@app/shared/contracts/messaging.ts'
import { notFound } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { mediaUrls } from '../media/media.ts'
import { type MessageRow, toMessage } from './messages.ts'

export const getMessage: Handler<App, typeof contract> = async (app, { params }, { organizationId }) => {
  const [row] = await app.sql<MessageRow[]>`
    select id, conversation_id, recipient, direction, type, content, status, upstream_id, error, unsupported, played_at, media_id,
      created_at
    from messages
    where organization_id = ${organizationId} and phone_number_id = ${params.phone_number_id} and id = ${params.id}
  `
  if (!row) throw notFound()
  return toMessage(row, await mediaUrls(app, organizationId, [row.mediaId]))
}
