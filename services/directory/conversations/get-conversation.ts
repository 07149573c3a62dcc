import type { Handler } from '@app/shared/api/contract.ts'
import type { getConversation as contract } from '@app/shared/contracts/conversations.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { findConversation, toConversation } from './conversations.ts'

export const getConversation: Handler<App, typeof contract> = async ({ sql }, { params }, { organizationId }) => {
  const row = await findConversation(sql, { organizationId, phoneNumberId: params.phone_number_id }, params.id)
  if (!row) throw notFound()
  return toConversation(row)
}
