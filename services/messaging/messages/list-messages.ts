import type { Handler, Input } from '@app/shared/api/contract.ts'
import { listMessages as contract } from '@app/shared/contracts/messaging.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import { openPage } from '@app/shared/api/page.ts'
import { limitTo } from '@app/shared/database/limit-to.ts'
import type { App } from '../app.ts'
import { shownFiles } from '../media/media.ts'
import { isOfConversation, messageColumns, type MessageRow, toMessage } from './messages.ts'

/**
 * Messages of a kind in one conversation are looked for among all of that conversation: a tenth of a second for 200,000, as measured.
 * So such lists of one organization wait for each other. Else they could take all connections, and other organizations' messages
 * would wait for one.
 */
export const listMessages: Handler<App, typeof contract> = (app, input, caller) => {
  const { conversation_id: conversationId, direction, status } = input.query
  const mayReadMany = conversationId !== undefined && (direction ?? status) !== undefined
  return mayReadMany ? app.listInTurn(caller, () => list(app, input, caller)) : list(app, input, caller)
}

const list: Handler<App, typeof contract> = async (app, { params, query }, caller) => {
  const { sql, cursorKeys } = app
  const { mostRows, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const of = { organizationId: caller.organizationId, phoneNumberId: params.phone_number_id, after, rows: mostRows }
  const rows = await sql<MessageRow[]>`
    select ${messageColumns(sql)} from ${messagesOf(sql, query, of)} m order by id desc ${limitTo(sql, mostRows)}
  `
  const files = await shownFiles(
    app,
    caller.organizationId,
    rows.map(({ mediaId }) => mediaId),
  )
  return page(
    rows,
    (row) => toMessage(row, files.get(row.mediaId)),
    ({ id }) => id,
  )
}

type Query = Input<typeof contract>['query']

interface Place {
  organizationId: string
  phoneNumberId: string
  after: string | null
  rows: number
}

const statuses = ['queued', 'sent', 'delivered', 'read', 'failed']
const directions = ['inbound', 'outbound']

/** One sorts before all ids, the other behind them. */
const [firstId, lastId] = ['', '~']

/** The ids from which and below which. */
function spanOf({ created_after: after, created_before: before }: Query, cursor: string | null) {
  const ends = [before === undefined ? lastId : firstIdAt('msg', new Date(before)), cursor ?? lastId]
  return { from: after === undefined ? firstId : behind(after), below: ends.reduce((a, b) => (a < b ? a : b)) }
}

/**
 * The messages that the page is made of. By status or direction: the first ones of each kind, read from the index of kinds. A kind is
 * compared as a range, and stands in the `order by`. Compared with `=`, the order would be the primary key's, and Postgres might go
 * through that instead, past all messages of the usual kind to find one of a rare kind.
 *
 * The range has one end, and what lies behind the kind is left out afterwards: at a lower end of several columns Postgres stops when the
 * first of them is another, and would go on through everybody's messages of that status.
 */
function messagesOf(sql: Sql, { conversation_id: conversationId, direction, ...query }: Query, place: Place) {
  const { organizationId, phoneNumberId, after, rows } = place
  const status = query.status === 'pending' ? 'queued' : query.status
  const { from, below } = spanOf(query, after)
  const inSpan = sql`
      ${from === firstId ? sql`` : sql`and id >= ${from}`} ${below === lastId ? sql`` : sql`and id < ${below}`}
  `
  if (conversationId !== undefined) {
    const isOf = isOfConversation(sql, { organizationId, phoneNumberId, conversationId, direction, status })
    return sql`(
      select * from messages where ${isOf} ${inSpan} and (
        -- Asked once, before any of the others is read: of another number's conversation all would be, in vain.
        select array[organization_id, phone_number_id] = array[${organizationId}, ${phoneNumberId}]
        from messages where conversation_id = ${conversationId} order by conversation_id, id limit 1
      )
    )`
  }
  if (status === undefined && direction === undefined)
    return sql`(
      select * from messages where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} ${inSpan}
    )`
  return sql`(
    select m.* from (
      select k.id from unnest(${status === undefined ? statuses : [status]}::text[]) s
        cross join unnest(${direction === undefined ? directions : [direction]}::text[]) d
        cross join lateral (
          select status, direction, organization_id, phone_number_id, id from messages
          where (status, direction, organization_id, phone_number_id, id) < (s, d, ${organizationId}, ${phoneNumberId}, ${below})
          order by status desc, direction desc, organization_id desc, phone_number_id desc, id desc ${limitTo(sql, rows)}
        ) k
      where k.status = s and k.direction = d and k.organization_id = ${organizationId} and k.phone_number_id = ${phoneNumberId}
        and k.id >= ${from}
      order by k.id desc ${limitTo(sql, rows)}
    ) page cross join lateral (
      select * from messages
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and id = page.id limit 1
    ) m
  )`
}

/** The first id after the given millisecond: an id's time is its row's `created_at`. */
const behind = (time: string) => firstIdAt('msg', new Date(Date.parse(time) + 1))
