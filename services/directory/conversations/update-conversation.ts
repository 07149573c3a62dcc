import type { Handler } from '@app/shared/contract.ts'
import { conversationClosed, type updateConversation as contract } from '@app/shared/contracts/conversations.ts'
import type { TransactionSql } from '@app/shared/database.ts'
import { record, recorded } from '@app/shared/events.ts'
import { notFound } from '@app/shared/problem.ts'
import type { z } from 'zod'
import { teamOfAccount } from '../accounts/team-of-account.ts'
import type { App } from '../app.ts'
import type { Origin } from '../contacts/identity-updated.ts'
import { assignedEvent } from './conversation-assigned.ts'
import { type ConversationRow, findConversation, toConversation } from './conversations.ts'

type Body = z.output<(typeof contract)['body']>
type State = Pick<ConversationRow, 'status' | 'assignedTo'>

export const updateConversation: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const origin = { ...caller, phoneNumberId: params.phone_number_id }
  const row = await app.sql.begin(async (tx) => {
    await change(tx, origin, params.id, body)
    return findConversation(tx, origin, params.id)
  })
  if (!row) throw notFound()
  app.tellChanged([row.id])
  app.relay.wake()
  return toConversation(row)
}

async function change(tx: TransactionSql, origin: Origin, id: string, body: Body): Promise<void> {
  const { organizationId, phoneNumberId } = origin
  const [before] = await tx<State[]>`
    select status, assigned_to from conversations
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and id = ${id}
    for no key update
  `
  if (!before) throw notFound()
  const { status = before.status, assigned_to: assignedTo = before.assignedTo } = body
  const after = { status, assignedTo }
  if (after.status === before.status && after.assignedTo === before.assignedTo) return
  await tx`
    update conversations set status = ${status}, assigned_to = ${assignedTo}, updated_at = greatest(updated_at, now())
    where organization_id = ${organizationId} and id = ${id}
  `
  await record(tx, eventsOf(id, before, after, origin, await teamOfAccount(tx, origin)))
}

function eventsOf(id: string, before: State, after: State, origin: Origin, teamId: string) {
  const assigned = () => assignedEvent({ id, ...after, previous: before.assignedTo, teamId }, origin)
  const conversation = { id, object: 'conversation' as const, phone_number_id: origin.phoneNumberId }
  const closed = () =>
    recorded(
      conversationClosed,
      { conversation: { ...conversation, status: 'resolved', closed_by_user_id: null } },
      origin,
    )
  return [
    ...(after.assignedTo === before.assignedTo ? [] : [assigned()]),
    ...(after.status === 'resolved' && before.status !== 'resolved' ? [closed()] : []),
  ]
}
