import { hash } from 'node:crypto'
import type { App } from '../app.ts'
import { asciiJson } from '../callbacks/ascii-json.ts'
import type { Update } from '../callbacks/update.ts'
import { failedStatusError, type StatusFailure } from '../graph/graph-error.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import type { Status } from '../settings.ts'
import { wordsOf } from '../words.ts'
import type { MessageType } from './check-message.ts'
import type { Category } from '../templates/template.ts'
import { type Recipient, recipientKey } from './recipient.ts'

interface AcceptedSend {
  id: string
  number: PhoneNumber
  recipient: Recipient
  type: MessageType
  /** The API version that was called: its number decides on the conversation block. */
  version: number
  opaque: string | undefined
  failure: StatusFailure | undefined
  /** Of its template. */
  category: Category | undefined
}

const order: Status[] = ['sent', 'delivered', 'read']
const lastVersionWithConversation = 23
const dayS = 24 * 3_600

/** Lets the statuses of an accepted send follow, one `status_delay_ms` after the other. */
export function scheduleStatuses(app: App, send: AcceptedSend) {
  const { statuses, status_delay_ms: delayMs, reorder } = app.settings.current
  if (statuses.length === 0) return
  if (send.failure) return app.schedule.after(delayMs, () => statusUpdate(app, send, 'failed'))
  const due = order.filter((status) => statuses.includes(status) && (send.type !== 'reaction' || status === 'sent'))
  if (reorder) due.reverse()
  // Pricing comes with `sent` and with one of the other two.
  const pricedToo = due.includes('delivered') ? 'delivered' : 'read'
  due.forEach((status, index) => {
    const priced = status === 'sent' || status === pricedToo
    app.schedule.after(delayMs * (index + 1), () => statusUpdate(app, send, status, priced))
  })
}

function statusUpdate(app: App, send: AcceptedSend, status: Status | 'failed', priced = false): Update {
  const { number, recipient, failure, opaque } = send
  const { phoneNumberId } = number
  app.feed.add({ type: 'status', id: send.id, status, number: phoneNumberId, person: recipientKey(recipient) })
  const person = app.people.find(number.phoneNumberId, recipient)
  const userId = recipient.userId ?? person?.userId
  const now = Math.floor(Date.now() / 1_000)
  const item = {
    id: send.id,
    status,
    timestamp: `${now}`,
    recipient_id: recipient.waId,
    recipient_user_id: userId,
    biz_opaque_callback_data: opaque,
    ...(failure ? { errors: [failedStatusError(failure)] } : billing(send, status, priced, now)),
  }
  const { personId } = wordsOf(app.settings.current)
  const contact = { profile: person?.profile, [personId]: recipient.waId, user_id: userId }
  return {
    number,
    kind: 'statuses',
    item: asciiJson(item),
    contact: failure ? undefined : asciiJson(contact),
  }
}

function billing(send: AcceptedSend, status: Status | 'failed', priced: boolean, now: number) {
  const billable = send.category !== undefined
  const category = send.category?.toLowerCase() ?? 'service'
  const type = billable ? 'regular' : 'free_customer_service'
  return {
    ...(send.version <= lastVersionWithConversation && { conversation: conversation(send, status, category, now) }),
    ...(priced && { pricing: { billable, pricing_model: 'PMP', category, type } }),
  }
}

/** One id for a pair and a day; only `sent` says when it ends. */
function conversation({ number, recipient }: AcceptedSend, status: string, category: string, now: number) {
  const day = Math.floor(now / dayS)
  return {
    id: hash('md5', `${number.phoneNumberId} ${recipientKey(recipient)} ${day}`),
    expiration_timestamp: status === 'sent' ? `${(day + 1) * dayS}` : undefined,
    origin: { type: category },
  }
}
