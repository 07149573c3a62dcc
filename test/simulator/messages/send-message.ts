import type { App } from '../app.ts'
import type { GraphRequest } from '../graph/graph-request.ts'
import { badParameter, GraphError, type StatusFailure } from '../graph/graph-error.ts'
import { optionalText, type Param, requiredObject, requiredText } from '../graph/params.ts'
import { checkMediaIds } from '../media/check-media-ids.ts'
import { checkTemplateSend } from '../templates/check-template-send.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { wordsOf } from '../words.ts'
import { checkMessage, type MessageType } from './check-message.ts'
import { markRead } from './mark-read.ts'
import { checkRecipient, type Recipient, recipientKey } from './recipient.ts'
import { scheduleStatuses } from './statuses.ts'
import { mintWamid } from './wamid.ts'

const outsideWindow: StatusFailure = {
  code: 131047,
  details:
    'Message failed to send because more than 24 hours have passed since the customer last replied to this number.',
}

/** `POST /{v}/{phone_number_id}/messages`: a send, or a read receipt when the body has a status. */
export function sendMessage(app: App, number: PhoneNumber, { version, message, raw }: GraphRequest) {
  mustBeRegistered(number)
  mustNameProduct(app, message)
  if (Object.hasOwn(message.fields, 'status')) return markRead(app, number, message, raw)

  const recipient = checkRecipient(message, number)
  const type = checkMessage(message)
  const misfit = checkMediaIds(app, number, type, message)
  const template = type === 'template' ? checkTemplateSend(app, number, message) : undefined
  if (template?.category === 'AUTHENTICATION' && recipient.waId === undefined)
    throw new GraphError(131062, { details: 'Authentication templates go to phone numbers alone.' })
  const at = Date.now()
  const failure = whyItFails(app, number, recipient, type, message) ?? misfit
  if (failure === outsideWindow && app.settings.current.window_refusal === 'sync')
    throw new GraphError(failure.code, failure)
  app.limits.charge(number, recipientKey(recipient), at)

  const id = mintWamid('outbound', recipientKey(recipient))
  const { phoneNumberId } = number
  app.history.addSend({ id, at, phoneNumberId, type, body: raw })
  const person = recipientKey(recipient)
  app.feed.add({ type: 'send', id, at, number: phoneNumberId, person, body: raw, template: template?.components })
  const opaque = optionalText(message, 'biz_opaque_callback_data')
  scheduleStatuses(app, { id, number, recipient, type, version, opaque, failure, category: template?.category })
  return acceptance(app, id, recipient, type)
}

/** A number that is FLAGGED or RATE_LIMITED still sends; a DELETED one is not found at all. */
function mustBeRegistered({ status }: PhoneNumber) {
  if (status === 'RESTRICTED' || status === 'BANNED')
    throw new GraphError(131031, { details: 'The business account has been restricted.' })
  if (status !== 'CONNECTED' && status !== 'FLAGGED' && status !== 'RATE_LIMITED')
    throw new GraphError(133010, { details: 'The phone number is not registered.' })
}

export function mustNameProduct({ settings }: App, message: Param) {
  const { product } = wordsOf(settings.current)
  const named = optionalText(message, 'messaging_product')
  if (named === undefined) throw badParameter('The parameter messaging_product is required.')
  if (named !== product)
    throw badParameter(`Param messaging_product must be one of {${product.toUpperCase()}} - got "${named}".`)
}

function whyItFails(
  { settings, people, history }: App,
  number: PhoneNumber,
  recipient: Recipient,
  type: MessageType,
  message: Param,
): StatusFailure | undefined {
  const free = type !== 'template'
  if (free && settings.current.enforce_window && !people.windowIsOpen(number.phoneNumberId, recipient, Date.now()))
    return outsideWindow
  if (type === 'reaction' && !history.canBeReactedTo(reactionTarget(message)))
    return { code: 131009, details: 'The message that is reacted to is unknown, deleted, too old, or a reaction.' }
  return undefined
}

const reactionTarget = (message: Param) => requiredText(requiredObject(message, 'reaction'), 'message_id')

function acceptance({ settings }: App, id: string, { input, waId, userId }: Recipient, type: MessageType) {
  const { product, personId } = wordsOf(settings.current)
  return {
    messaging_product: product,
    contacts: [waId === undefined ? { input, user_id: userId } : { input, [personId]: waId }],
    messages: [type === 'template' ? { id, message_status: settings.current.template_message_status } : { id }],
  }
}
