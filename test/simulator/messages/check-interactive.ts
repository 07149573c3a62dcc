import { GraphError } from '../graph/graph-error.ts'
import {
  lengthOf,
  onlyKeys,
  optionalObject,
  optionalText,
  type Param,
  requiredList,
  requiredObject,
  requiredText,
  requiredWord,
} from '../graph/params.ts'
import { checkMedia, isWebAddress } from './check-media.ts'

const headerTypes = ['text', 'image', 'video', 'document'] as const

const invalid = (details: string) => new GraphError(131009, { details })

/** An interactive message's own limits answer 131009, where a missing or mistyped field answers 100. */
function requiredLength(param: Param, key: string, name: string, maxLength: number) {
  const text = requiredText(param, key)
  if (lengthOf(text) > maxLength) throw invalid(`${name} length invalid. Min length: 1, Max length: ${maxLength}`)
  return text
}

/** Reply buttons or a link button; the platform's other kinds are not spoken here. */
export function checkInteractive(interactive: Param) {
  onlyKeys(interactive, 'type', 'header', 'body', 'footer', 'action')
  const type = requiredWord(interactive, 'type', ['button', 'cta_url'])
  const header = optionalObject(interactive, 'header')
  if (header) checkHeader(header)
  requiredLength(requiredObject(interactive, 'body'), 'text', 'Body text', 1024)
  const footer = optionalObject(interactive, 'footer')
  if (footer) requiredLength(footer, 'text', 'Footer text', 60)
  const action = requiredObject(interactive, 'action')
  if (type === 'button') checkButtons(action)
  else checkLinkButton(action)
}

function checkHeader(header: Param) {
  const type = requiredWord(header, 'type', headerTypes)
  onlyKeys(header, 'type', type)
  if (type !== 'text') return checkMedia(type, requiredObject(header, type))
  if (optionalText(header, 'text') === undefined) throw invalid('Text cannot be null for header type text')
  requiredLength(header, 'text', 'Header text', 60)
}

function checkButtons(action: Param) {
  onlyKeys(action, 'buttons')
  const buttons = requiredList(action, 'buttons')
  if (buttons.length < 1 || buttons.length > 3)
    throw invalid('Invalid buttons count. Min allowed buttons: 1, Max allowed buttons: 3')
  const replies = buttons.map(checkReplyButton)
  for (const key of ['id', 'title'] as const)
    if (new Set(replies.map((reply) => reply[key])).size < replies.length)
      throw invalid(`Button ${key} must be unique in the message`)
}

function checkReplyButton(button: Param) {
  onlyKeys(button, 'type', 'reply')
  requiredWord(button, 'type', ['reply'])
  const reply = requiredObject(button, 'reply')
  onlyKeys(reply, 'id', 'title')
  const id = requiredLength(reply, 'id', 'Button id', 256)
  if (id !== id.trim()) throw invalid('Button id must not have leading or trailing spaces')
  return { id, title: requiredLength(reply, 'title', 'Button title', 20) }
}

function checkLinkButton(action: Param) {
  onlyKeys(action, 'name', 'parameters')
  requiredWord(action, 'name', ['cta_url'])
  const parameters = requiredObject(action, 'parameters')
  onlyKeys(parameters, 'display_text', 'url')
  requiredLength(parameters, 'display_text', 'Button display text', 20)
  if (!isWebAddress(requiredText(parameters, 'url'))) throw invalid('Button url must be a valid URL')
}
