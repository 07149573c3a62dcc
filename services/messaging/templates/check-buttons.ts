import { urlIn } from '@app/shared/values/web-address.ts'
import { invalidIn, type Part, partsOf, textOf, wordOf } from './part.ts'
import { faultOfVariables, variablesOf } from './variables.ts'

const types = ['QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'OTP', 'FLOW', 'CATALOG', 'MPM', 'SPM', 'VOICE_CALL']

/** The platform's limits: buttons in all, and of one type. */
const most = 10
const mostOf: Readonly<Record<string, number>> = { URL: 2, PHONE_NUMBER: 1, COPY_CODE: 1 }
const longest = { text: 25, url: 2000, phoneNumber: 20, code: 15 }

/** Buttons whose label is the platform's own. */
const withoutLabel = new Set(['COPY_CODE', 'OTP'])

export function checkButtons(component: Part): void {
  const buttons = partsOf(component, 'buttons')
  if (buttons.length === 0 || buttons.length > most)
    throw invalidIn(component, 'buttons', `must be 1 to ${most} buttons`)
  const counts = new Map<string, number>()
  for (const button of buttons) {
    const type = wordOf(button, 'type')
    if (!types.includes(type)) throw invalidIn(button, 'type', `must be one of ${types.join(', ')}`)
    const count = (counts.get(type) ?? 0) + 1
    counts.set(type, count)
    if (count > (mostOf[type] ?? most))
      throw invalidIn(button, 'type', `is ${type} more than ${mostOf[type] === 1 ? 'once' : `${mostOf[type]} times`}`)
    checkButton(button, type)
  }
  refuseScattered(buttons)
}

function checkButton(button: Part, type: string) {
  if (!withoutLabel.has(type)) {
    const text = textOf(button, 'text', longest.text)
    if (/\{\{|\}\}/.test(text)) throw invalidIn(button, 'text', 'must not have variables')
  }
  if (type === 'URL') checkUrl(button)
  if (type === 'PHONE_NUMBER' && !/^\+?[\d\s()-]+$/.test(textOf(button, 'phone_number', longest.phoneNumber)))
    throw invalidIn(button, 'phone_number', 'must be a phone number')
  if (type === 'COPY_CODE') checkCode(button)
}

/** Its variable is a number, also where those of header and body have names. */
function checkUrl(button: Part) {
  const url = textOf(button, 'url', longest.url)
  const names = variablesOf(url)
  if (names.length > 1 || (names.length === 1 && !/\{\{\s*1\s*\}\}$/.test(url)))
    throw invalidIn(button, 'url', 'must have at most one variable, {{1}}, at its end')
  const fault = faultOfVariables(url, 'positional')
  if (fault !== null) throw invalidIn(button, 'url', fault)
  if (urlIn(url.replace(/\{\{[^{}]*\}\}$/, '')) === null) throw invalidIn(button, 'url', 'must be an absolute URL')
  if (names.length === 0) return
  const { example } = button.fields
  if (!Array.isArray(example) || example.length !== 1 || typeof example[0] !== 'string' || example[0] === '')
    throw invalidIn(button, 'example', 'must give the whole URL with an example of its variable')
}

/** The example of a code is a text, or a list of one. */
function checkCode(button: Part) {
  const { example } = button.fields
  const first: unknown = Array.isArray(example) ? example[0] : example
  textOf({ path: button.path, fields: { example: first } }, 'example', longest.code)
}

/** Quick replies stand together, before or after the others. */
function refuseScattered(buttons: Part[]) {
  const isReply = buttons.map((button) => wordOf(button, 'type') === 'QUICK_REPLY')
  const changes = isReply.flatMap((reply, n) => (n > 0 && reply !== isReply[n - 1] ? [n] : []))
  const third = changes[1] === undefined ? undefined : buttons[changes[1]]
  if (third) throw invalidIn(third, 'type', 'stands apart from its like: quick replies go together')
}
