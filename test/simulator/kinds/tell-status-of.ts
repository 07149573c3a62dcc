import type { App } from '../app.ts'
import { asciiJson } from '../callbacks/ascii-json.ts'
import { BadField } from '../control/parse.ts'
import { failedStatusError } from '../graph/graph-error.ts'
import { isFields } from '../graph/params.ts'
import { checkRecipient, type Recipient, recipientKey } from '../messages/recipient.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { wordsOf } from '../words.ts'
import { nowSeconds } from './kind.ts'

interface Told {
  message_id: string
  status: string
  /** Why it failed. */
  code: number
  to?: string | undefined
  timestamp?: string | undefined
}

/** Tells one status, whatever was told before; what the send carried comes with it, when the send is known. */
export function tellStatusOf(app: App, number: PhoneNumber, told: Told) {
  const { message_id: id, status, code, timestamp = nowSeconds() } = told
  const { recipient, opaque } = sendOf(app, number, told)
  const failed = status === 'failed'
  app.feed.add({ type: 'status', id, status, number: number.phoneNumberId, person: recipientKey(recipient) })
  const { personId } = wordsOf(app.settings.current)
  app.schedule.now({
    number,
    kind: 'statuses',
    item: asciiJson({
      id,
      status,
      timestamp,
      recipient_id: recipient.waId,
      recipient_user_id: recipient.userId,
      biz_opaque_callback_data: opaque,
      ...(failed && { errors: [failedStatusError({ code, details: 'Told through the control API.' })] }),
    }),
    contact: failed ? undefined : asciiJson({ [personId]: recipient.waId, user_id: recipient.userId }),
  })
  return { id }
}

function sendOf(
  { history }: App,
  number: PhoneNumber,
  { message_id: id, to }: Told,
): { recipient: Recipient; opaque?: unknown } {
  if (to !== undefined) return { recipient: { input: to, waId: to } }
  const send = history.send(id)
  if (send?.phoneNumberId !== number.phoneNumberId)
    throw new BadField('to', 'The send is not known: say whom it was for.')
  const body: unknown = JSON.parse(send.body)
  const fields = isFields(body) ? body : {}
  return { recipient: checkRecipient({ path: '', fields }, number), opaque: fields['biz_opaque_callback_data'] }
}
