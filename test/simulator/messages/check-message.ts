import { GraphError } from '../graph/graph-error.ts'
import {
  optionalObject,
  optionalText,
  type Param,
  requiredObject,
  requiredText,
  requiredWord,
} from '../graph/params.ts'
import { checkInteractive } from './check-interactive.ts'
import { checkMedia, type MediaType } from './check-media.ts'
import { checkReaction } from './check-reaction.ts'
import { checkTemplate } from './check-template.ts'
import { checkText } from './check-text.ts'

const media = (type: MediaType) => (block: Param) => checkMedia(type, block)

/** The types of message that are spoken here, each with the check of its block. */
const checks = {
  audio: media('audio'),
  document: media('document'),
  image: media('image'),
  interactive: checkInteractive,
  reaction: checkReaction,
  sticker: media('sticker'),
  template: checkTemplate,
  text: checkText,
  video: media('video'),
} satisfies Record<string, (block: Param) => void>

export type MessageType = keyof typeof checks
const types = Object.keys(checks) as MessageType[]

/** Everything of a send but its recipient; answers the type, which is `text` when none is named. */
export function checkMessage(message: Param): MessageType {
  if (Object.hasOwn(message.fields, 'recipient_type')) requiredWord(message, 'recipient_type', ['individual'])
  const type = Object.hasOwn(message.fields, 'type') ? requiredWord(message, 'type', types) : 'text'
  optionalText(message, 'biz_opaque_callback_data', 512)
  optionalText(message, 'recipient_identity_key_hash')
  checkContext(message, type)
  checks[type](requiredObject(message, type))
  return type
}

function checkContext(message: Param, type: MessageType) {
  const context = optionalObject(message, 'context')
  if (!context) return
  if (type === 'reaction') throw new GraphError(131009, { details: 'A reaction cannot be a contextual reply.' })
  requiredText(context, 'message_id')
}
