import type { Handler } from '@app/shared/api/contract.ts'
import type { recordInbound as contract } from '@app/shared/contracts/directory.ts'
import { invalidField, notFound } from '@app/shared/api/problem.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { identitiesOf } from '../contacts/identities.ts'
import { leftSince } from '../contacts/identity-changes.ts'
import { type Sender, senderOf } from '../contacts/sender.ts'
import { settleContact } from '../contacts/settle-contact.ts'
import { findSender } from './find-sender.ts'
import { type Inbound, toRecorded } from './insert-inbounds.ts'
import type { FoundContact } from './look-up.ts'
import { untilWon } from '../races.ts'

export const recordInbound: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const origin = { ...caller, phoneNumberId: params.phone_number_id }
  const { upstream_id: upstreamId } = body
  if (identitiesOf(senderOf(body)).length === 0)
    throw invalidField('wa_id', 'A message without wa_id and bsuid is from nobody.')
  let current = body
  let at = body.sent_at
  return untilWon(async () => {
    const sender = senderOf(current)
    const { account, recorded, contacts } = await findSender(app, sender, origin, upstreamId)
    if (!account) throw notFound()
    if (recorded) return toRecorded(recorded)
    const later = mayBeEarlier(sender, contacts) ? await leftSince(app.sql, origin, { current, at }) : undefined
    if (later) {
      current = { ...current, ...later.current }
      at = later.at
      return undefined
    }
    const parties = await settleContact(app, sender, contacts, origin)
    if (!parties) return undefined
    const row = await record(app, {
      organizationId: caller.organizationId,
      phoneNumberId: origin.phoneNumberId,
      upstreamId,
      sentAt: sender.sentAt,
      countsUnread: body.counts_unread,
      ...parties,
    })
    return row ? toRecorded(row) : undefined
  })
}

/**
 * Whether the message may be from before its sender changed names: because nobody is known by its names, or because the contact that is has
 * another number or user id, or was heard of after the message was sent, and may be the number's next owner.
 */
const mayBeEarlier = ({ waId, phoneNumber, bsuid, sentAt }: Sender, contacts: FoundContact[]) =>
  contacts.length === 0 ||
  contacts.some(
    (contact) =>
      (waId !== null && waId !== contact.waId && phoneNumber !== contact.phoneNumber) ||
      (bsuid !== null && contact.bsuid !== null && bsuid !== contact.bsuid) ||
      sentAt < (contact.conversation?.lastInboundAt ?? timeOf(contact.id)),
  )

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
