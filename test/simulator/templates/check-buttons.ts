import { lengthOf, optionalText, type Param, requiredList, requiredText } from '../graph/params.ts'
import { isWebAddress } from '../messages/check-media.ts'
import { requiredWordOf } from './required-word-of.ts'
import { subcodes, templateError } from './template-error.ts'
import { variablesOf } from './variables.ts'

const buttonTypes = ['QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'COPY_CODE', 'FLOW', 'VOICE_CALL'] as const
const most: Partial<Record<string, number>> = { URL: 2, PHONE_NUMBER: 1, COPY_CODE: 1 }

const refusal = (message: string) => templateError(undefined, 'Buttons are wrong', message)

/** The buttons of a template: how many of each, and that quick replies stand together. */
export function checkButtons(component: Param) {
  const buttons = requiredList(component, 'buttons')
  if (buttons.length < 1 || buttons.length > 10) throw refusal('A template has 1 to 10 buttons.')
  const types = buttons.map((button) => {
    const type = requiredWordOf(button, 'type', buttonTypes)
    checkButton(type, button)
    return type
  })
  for (const [type, count] of Object.entries(most))
    if (count !== undefined && types.filter((each) => each === type).length > count)
      throw refusal(`A template has at most ${count} buttons of type ${type}.`)
  const runs = types.filter((type, at) => (type === 'QUICK_REPLY') !== (types[at - 1] === 'QUICK_REPLY') || at === 0)
  if (runs.length > 2) throw refusal('Quick replies must stand together.')
}

function checkButton(type: (typeof buttonTypes)[number], button: Param) {
  if (type === 'COPY_CODE') return checkLength(exampleOf(button) ?? '', 'code', 15)
  checkLength(requiredText(button, 'text'), 'label', 25)
  if (type === 'PHONE_NUMBER') return checkLength(requiredText(button, 'phone_number'), 'phone number', 20)
  if (type === 'URL') return checkUrl(button)
}

function checkLength(text: string, name: string, maxLength: number) {
  if (text === '' || lengthOf(text) > maxLength)
    throw templateError(subcodes.length, 'Button is too long', `A button's ${name} has 1 to ${maxLength} characters.`)
}

/** One variable at most, `{{1}}` whatever those of the body are, at the end, with an example. */
function checkUrl(button: Param) {
  const url = requiredText(button, 'url')
  checkLength(url, 'url', 2000)
  if (!isWebAddress(url)) throw refusal('A button opens an http or https address.')
  const variables = variablesOf(url)
  if (variables.length === 0) return
  if (variables.length > 1 || !/\{\{\s*1\s*\}\}$/.test(url)) throw refusal('A url has one variable, {{1}}, at its end.')
  if (exampleOf(button) === undefined) throw refusal('A url with a variable needs an example.')
}

function exampleOf(button: Param) {
  const { example } = button.fields
  const [first] = Array.isArray(example) ? example : [example]
  return typeof first === 'string' && first !== '' ? first : optionalText(button, 'coupon_code')
}
