import type { Handler } from '@app/shared/api/contract.ts'
import { listConversations as contract } from '@app/shared/contracts/conversations.ts'
import { openPage } from '@app/shared/api/page.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { changedConversations, settledUntil } from './changed-conversations.ts'
import { conversationColumns, type ConversationRow, partyColumns, toConversation } from './conversations.ts'
import { newestConversations } from './newest-conversations.ts'

export const listConversations: Handler<App, typeof contract> = async (app, { params, query }, caller) => {
  const { sql, cursorKeys } = app
  const { organizationId } = caller
  const { phone_number_id: phoneNumberId } = params
  const { updated_since: since } = query
  const { mostRows, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const asked = { organizationId, phoneNumberId, query, after: positionIn(after), rows: mostRows }
  const { conversations, order } =
    since === undefined
      ? newestConversations(sql, asked)
      : changedConversations(sql, asked, { since, until: await settledUntil(sql) })
  // The account's row stands alone when it has no conversations; no row means no such account.
  const rows = await sql<(ConversationRow | { id: null })[]>`
    select ${conversationColumns(sql)}, ${partyColumns(sql)}
    from accounts a
    left join (${conversations}) v on true
    -- One look-up for each. Joined, all of the organization are read for each while the planner believes that it has few.
    left join lateral (select * from contacts where organization_id = ${organizationId} and id = v.contact_id limit 1) c on true
    left join lateral (select * from members where organization_id = ${organizationId} and id = v.assigned_to limit 1) m on true
    where a.organization_id = ${organizationId} and a.phone_number_id = ${phoneNumberId}
    order by ${order}
  `
  if (rows.length === 0) throw notFound()
  const timeOf = since === undefined ? newestOf : changedOf
  return page(rows.filter(isConversation), toConversation, (row) => `${timeOf(row)}|${row.id}`)
}

const isConversation = (row: ConversationRow | { id: null }): row is ConversationRow => row.id !== null

const newestOf = ({ lastMessageAt }: ConversationRow) => lastMessageAt?.toISOString() ?? ''
const changedOf = ({ updatedAt }: ConversationRow) => updatedAt.toISOString()

/** The time and id of the last item of the page before. */
function positionIn(after: string | null) {
  if (after === null) return null
  const [time = '', id = ''] = after.split('|')
  return { time, id }
}
