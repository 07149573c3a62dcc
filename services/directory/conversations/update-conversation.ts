import type { Handler } from '@app/shared/api/contract.ts'
import type { updateConversation as contract } from '@app/shared/contracts/conversations.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { record } from '@app/shared/events/events.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { z } from 'zod'
import { teamOfAccount } from '../accounts/team-of-account.ts'
import type { App } from '../app.ts'
import type { Origin } from '../contacts/identity-updated.ts'
import { assignedEvent } from './conversation-assigned.ts'
import { closedEvent } from './conversation-closed.ts'
import { type ConversationRow, findConversation, lockLive, toConversation } from './conversations.ts'

type Body = z.output<(typeof contract)['body']>
type State = Pick<ConversationRow, 'status' | 'assignedTo'>

export const updateConversation: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const origin = { ...caller, phoneNumberId: params.phone_number_id }
  let { id } = params
  const changing = app.sql.begin(async (tx) => {
    const before = await lockLive(tx, origin, id)
    id = before.id
    await change(tx, origin, before, body)
    return findConversation(tx, origin, id)
  })
  const row = await changing.finally(() => app.tellChanged([id]))
  if (!row) throw notFound()
  app.relay.wake()
  return toConversation(row)
}

async function change(tx: TransactionSql, origin: Origin, before: State & { id: string }, body: Body): Promise<void> {
  const { status = before.status, assigned_to: assignedTo = before.assignedTo } = body
  const after = { status, assignedTo }
  if (after.status === before.status && after.assignedTo === before.assignedTo) return
  await tx`
    update conversations set status = ${status}, assigned_to = ${assignedTo}, updated_at = greatest(updated_at, now())
    where organization_id = ${origin.organizationId} and id = ${before.id}
  `
  await record(tx, eventsOf(before.id, before, after, origin, await teamOfAccount(tx, origin)))
}

function eventsOf(id: string, before: State, after: State, origin: Origin, teamId: string) {
  const assigned = () => assignedEvent({ id, ...after, previous: before.assignedTo, teamId }, origin)
  return [
    ...(after.assignedTo === before.assignedTo ? [] : [assigned()]),
    ...(after.status === 'resolved' && before.status !== 'resolved' ? [closedEvent(id, origin)] : []),
  ]
}
