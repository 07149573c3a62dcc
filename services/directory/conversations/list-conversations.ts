import type { Handler } from '@app/shared/contract.ts'
import { listConversations as contract } from '@app/shared/contracts/directory.ts'
import { openPage } from '@app/shared/page.ts'
import { notFound } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { conversationColumns, type ConversationRow, partyColumns, toConversation } from './conversations.ts'

export const listConversations: Handler<App, typeof contract> = async (app, { params, query }, caller) => {
  const { sql, cursorKeys } = app
  const { organizationId } = caller
  const { phone_number_id: phoneNumberId } = params
  const { status, contact_id: contactId } = query
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const [afterTime, afterId] = after?.split('|') ?? []
  // The expression of the indexes: a row comparison with it is one range, where `nulls last` would be two.
  const newest = sql`coalesce(v.last_message_at, '-infinity'::timestamptz)`
  // The account's row stands alone when it has no conversations; no row means no such account.
  const rows = await sql<(ConversationRow | { id: null })[]>`
    select ${conversationColumns(sql)}, ${partyColumns(sql)}
    from accounts a
    left join (
      select ${conversationColumns(sql)} from conversations v
      where v.organization_id = ${organizationId} and v.phone_number_id = ${phoneNumberId}
        ${status === undefined ? sql`` : sql`and v.status = ${status}`}
        ${contactId === undefined ? sql`` : sql`and v.contact_id = ${contactId}`}
        ${afterId === undefined ? sql`` : sql`and (${newest}, v.id) < (${afterTime || '-infinity'}::text::timestamptz, ${afterId})`}
      order by ${newest} desc, v.id desc limit ${limit + 1}
    ) v on true
    left join contacts c on c.organization_id = ${organizationId} and c.id = v.contact_id
    where a.organization_id = ${organizationId} and a.phone_number_id = ${phoneNumberId}
    order by ${newest} desc, v.id desc
  `
  if (rows.length === 0) throw notFound()
  return page(rows.filter(isConversation), toConversation, positionOf)
}

const isConversation = (row: ConversationRow | { id: null }): row is ConversationRow => row.id !== null

const positionOf = ({ lastMessageAt, id }: ConversationRow) => `${lastMessageAt?.toISOString() ?? ''}|${id}`
