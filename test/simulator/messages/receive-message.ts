import type { App } from '../app.ts'
import { asciiJson } from '../callbacks/ascii-json.ts'
import { type Fields, isFields } from '../graph/params.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { renamePersonIds, wordsOf } from '../words.ts'
import { isMediaType } from './check-media.ts'
import { waIdOf } from './recipient.ts'
import { mintWamid } from './wamid.ts'

/** A message as a person writes it to a number, in the platform's own shape; `type` is followed by its block. */
export interface InboundMessage {
  [key: string]: unknown
  type: string
  from?: string | undefined
  from_user_id?: string | undefined
  id?: string | undefined
  timestamp?: string | undefined
}

export interface InboundContact {
  profile?: Fields | undefined
  wa_id?: string | undefined
  user_id?: string | undefined
  parent_user_id?: string | undefined
}

/** Sends the callback of an inbound message, opens the writer's window, and answers the message's id. */
export function receiveMessage(app: App, number: PhoneNumber, message: InboundMessage, contact: InboundContact) {
  const { from = contact.wa_id, from_user_id: userId = contact.user_id } = message
  const waId = contact.wa_id ?? from
  const person = { waId: waId && waIdOf(waId), userId }
  const writer = waId ?? userId ?? ''
  const { id = mintWamid('inbound', writer), timestamp = `${Math.floor(Date.now() / 1_000)}` } = message
  const known = app.people.find(number.phoneNumberId, person)
  const profile = contact.profile ?? known?.profile ?? { name: `User ${writer.slice(-4)}` }

  const words = wordsOf(app.settings.current)
  const { phoneNumberId } = number
  const jsonOf = (value: unknown) => asciiJson(renamePersonIds(value, words))
  const isFromPerson = message.type !== 'system'
  if (isFromPerson)
    app.people.remember(number.phoneNumberId, { ...person, profile, wroteAt: Number(timestamp) * 1_000 })
  app.history.addReceived(id, { phoneNumberId: number.phoneNumberId, type: message.type, from: writer })
  const at = Number(timestamp) * 1_000
  app.feed.add({ type: 'inbound', id, at, number: phoneNumberId, person: person.waId ?? writer, message })
  app.schedule.now({
    number,
    kind: 'messages',
    item: jsonOf({ from, from_user_id: userId, id, timestamp, ...message, ...mediaOf(app, message) }),
    contact: isFromPerson ? jsonOf({ profile, ...contact, wa_id: waId, user_id: userId }) : undefined,
  })
  app.dataFile.saveSoon()
  return id
}

/** What the platform tells of a file beside its id, where the message does not say it. */
function mediaOf({ media, url }: App, message: InboundMessage) {
  const block = message[message.type]
  const id = isFields(block) ? block['id'] : undefined
  const medium = isMediaType(message.type) && typeof id === 'string' ? media.find(id) : undefined
  if (!medium || !isFields(block)) return {}
  const { mimeType: mime_type, sha256, filename } = medium
  const named = message.type === 'document' && filename !== undefined ? { filename } : {}
  return { [message.type]: { mime_type, sha256, url: url() + media.pathOf(medium.id), ...named, ...block } }
}
