import type { Handler } from '@app/shared/contract.ts'
import type { getConversation as contract } from '@app/shared/contracts/directory.ts'
import { notFound } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { conversationColumns, type ConversationRow, partyColumns, toConversation } from './conversations.ts'

export const getConversation: Handler<App, typeof contract> = async ({ sql }, { params }, { organizationId }) => {
  const [row] = await sql<ConversationRow[]>`
    select ${conversationColumns(sql)}, ${partyColumns(sql)}
    from conversations v
    join contacts c on c.organization_id = v.organization_id and c.id = v.contact_id
    join accounts a on a.organization_id = v.organization_id and a.phone_number_id = v.phone_number_id
    where v.organization_id = ${organizationId} and v.phone_number_id = ${params.phone_number_id} and v.id = ${params.id}
  `
  if (!row) throw notFound()
  return toConversation(row)
}
