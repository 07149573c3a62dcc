import type { Handler } from '@app/shared/api/contract.ts'
import { listMessages as contract } from '@app/shared/contracts/messaging.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import { openPage } from '@app/shared/api/page.ts'
import type { App } from '../app.ts'
import { mediaUrls } from '../media/media.ts'
import { messageColumns, type MessageRow, toMessage } from './messages.ts'

export const listMessages: Handler<App, typeof contract> = async (app, { params, query }, caller) => {
  const { sql, cursorKeys } = app
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const { conversation_id: conversationId, direction, status } = query
  const rows = await sql<MessageRow[]>`
    select ${messageColumns(sql)} from messages
    where organization_id = ${caller.organizationId} and phone_number_id = ${params.phone_number_id}
      ${conversationId === undefined ? sql`` : sql`and conversation_id = ${conversationId}`}
      ${direction === undefined ? sql`` : direction === 'inbound' ? sql`and direction = 'inbound'` : sql`and direction = 'outbound'`}
      ${status === undefined ? sql`` : sql`and status = ${status === 'pending' ? 'queued' : status}`}
      ${query.created_after === undefined ? sql`` : sql`and id >= ${behind(query.created_after)}`}
      ${query.created_before === undefined ? sql`` : sql`and id < ${firstIdAt('msg', new Date(query.created_before))}`}
      ${after === null ? sql`` : sql`and id < ${after}`}
    order by id desc limit ${limit + 1}
  `
  const urls = await mediaUrls(
    app,
    caller.organizationId,
    rows.map(({ mediaId }) => mediaId),
  )
  return page(
    rows,
    (row) => toMessage(row, urls),
    ({ id }) => id,
  )
}

/** The first id after the given millisecond: an id's time is its row's `created_at`. */
const behind = (time: string) => firstIdAt('msg', new Date(Date.parse(time) + 1))
