import type { Handler } from '@app/shared/api/contract.ts'
import type { recordInbound as contract } from '@app/shared/contracts/directory.ts'
import { invalidField, notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { identitiesOf } from '../contacts/identities.ts'
import { senderOf } from '../contacts/sender.ts'
import { settleContact } from '../contacts/settle-contact.ts'
import { findSender } from './find-sender.ts'
import { type Inbound, toRecorded } from './insert-inbounds.ts'
import { untilWon } from '../races.ts'

export const recordInbound: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { organizationId } = caller
  const { phone_number_id: phoneNumberId } = params
  const { upstream_id: upstreamId } = body
  const sender = senderOf(body)
  if (identitiesOf(sender).length === 0)
    throw invalidField('wa_id', 'A message without wa_id and bsuid is from nobody.')
  return untilWon(async () => {
    const { account, recorded, contacts } = await findSender(app, sender, { organizationId, phoneNumberId }, upstreamId)
    if (!account) throw notFound()
    if (recorded) return toRecorded(recorded)
    const parties = await settleContact(app, sender, contacts, { ...caller, phoneNumberId })
    if (!parties) return undefined
    const row = await record(app, {
      organizationId,
      phoneNumberId,
      upstreamId,
      sentAt: sender.sentAt,
      countsUnread: body.counts_unread,
      ...parties,
    })
    return row ? toRecorded(row) : undefined
  })
}

/** One that failed may be recorded. */
async function record({ insertInbound, tellChanged }: App, inbound: Inbound) {
  let isChanged = true
  try {
    const row = await insertInbound(inbound)
    isChanged = row?.isReopening ?? false
    return row
  } finally {
    if (isChanged) tellChanged([inbound.conversationId])
  }
}
