import type { App } from '../app.ts'
import { GraphError } from '../graph/graph-error.ts'
import { isFields, lengthOf, optionalList, type Param, requiredObject, requiredText } from '../graph/params.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import type { Template } from './template.ts'
import { fillIn, variablesOf } from './variables.ts'

const maxHydratedLength = 1024
const sendable = new Set<Template['status']>(['APPROVED', 'FLAGGED', 'REINSTATED'])
/** What of a template's buttons a send must fill in. */
const parameterOfButton: Partial<Record<string, string>> = { COPY_CODE: 'coupon_code', OTP: 'text' }

type Part = Template['components'][number]

/**
 * Holds a send, whose shape is right, against the template that it names.
 * @throws 132001 unknown or not approved, 132015 paused, 132016 disabled, 132000 count, 132012 type, 131008 a button's parameter
 */
export function checkTemplateSend({ templates }: App, number: PhoneNumber, message: Param): Template {
  const send = requiredObject(message, 'template')
  const name = requiredText(send, 'name')
  const language = requiredText(requiredObject(send, 'language'), 'code')
  const template = templates.of({ businessAccountId: number.businessAccountId, name, language })
  if (template?.status === 'PAUSED') throw new GraphError(132015, { details: `template (${name}) is paused` })
  if (template?.status === 'DISABLED') throw new GraphError(132016, { details: `template (${name}) is disabled` })
  if (!template || !sendable.has(template.status))
    throw new GraphError(132001, { details: `template name (${name}) does not exist in ${language}` })

  const given = optionalList(send, 'components')
  const ofType = (type: string) => given.find(({ fields }) => wordOf(fields['type']).toLowerCase() === type)
  const parts = new Map(template.components.map((part) => [wordOf(part['type']).toUpperCase(), part]))
  checkHeader(template, parts.get('HEADER'), ofType('header'))
  if (template.category === 'AUTHENTICATION') checkCount('body', 1, parametersOf(ofType('body')).length)
  else checkText(template, 'body', wordOf(parts.get('BODY')?.['text']), parametersOf(ofType('body')))
  checkButtons(buttonsOf(parts.get('BUTTONS')), given)
  return template
}

const parametersOf = (component: Param | undefined) => (component ? optionalList(component, 'parameters') : [])

function checkCount(part: string, expected: number, actual: number) {
  if (expected === actual) return
  throw new GraphError(132000, {
    details: `${part}: number of localizable_params (${actual}) does not match the expected number of params (${expected})`,
  })
}

function checkHeader(template: Template, header: Part | undefined, sent: Param | undefined) {
  const parameters = parametersOf(sent)
  const format = (wordOf(header?.['format']) || 'TEXT').toUpperCase()
  if (format === 'TEXT') return checkText(template, 'header', wordOf(header?.['text']), parameters)
  const received = (wordOf(parameters[0]?.fields['type']) || 'unknown').toUpperCase()
  if (parameters.length === 1 && received === format) return
  throw new GraphError(132012, { details: `header: Format mismatch, expected ${format}, received ${received}` })
}

function checkText(template: Template, part: 'header' | 'body', text: string, parameters: Param[]) {
  const variables = variablesOf(text)
  checkCount(part, variables.length, parameters.length)
  const isNamed = template.parameterFormat === 'NAMED'
  const odd = parameters.find(({ fields }) => part === 'header' && fields['type'] !== 'text')
  if (odd) throw new GraphError(132012, { details: `header: Format mismatch, expected TEXT` })
  const names = parameters.map(({ fields }, at) => (isNamed ? fields['parameter_name'] : `${at + 1}`))
  const missing = variables.find((variable) => !names.includes(variable))
  if (missing !== undefined)
    throw new GraphError(100, { details: `${part}: Parameter name is missing or empty: ${missing}` })
  const hydrated = fillIn(text, (variable) => textOf(parameters[names.indexOf(variable)]))
  if (lengthOf(hydrated) > maxHydratedLength)
    throw new GraphError(132005, { details: `${part}: the translated text is longer than ${maxHydratedLength}.` })
}

/** A text, or what stands for a currency or a date. */
function textOf(parameter: Param | undefined) {
  const block = parameter?.fields[wordOf(parameter.fields['type'])]
  return wordOf(isFields(block) ? block['fallback_value'] : block)
}

function buttonsOf(buttons: Part | undefined): Part[] {
  const list = buttons?.['buttons']
  return Array.isArray(list) ? list.filter(isFields) : []
}

function checkButtons(buttons: Part[], given: Param[]) {
  const sent = given.filter(({ fields }) => wordOf(fields['type']).toLowerCase() === 'button')
  for (const component of sent) {
    const button = buttons[Number(component.fields['index'])]
    const type = wordOf(component.fields['sub_type']).toUpperCase()
    if (!button || (kindOf(button) !== type && !(kindOf(button) === 'OTP' && type === 'URL')))
      throw new GraphError(132018, {
        details: `buttons: no button of type ${type} at index ${String(component.fields['index'])}`,
      })
  }
  buttons.forEach((button, index) => {
    const type = kindOf(button)
    const wanted = type === 'URL' && variablesOf(wordOf(button['url'])).length > 0 ? 'text' : parameterOfButton[type]
    const parameters = parametersOf(sent.find(({ fields }) => Number(fields['index']) === index))
    if (wanted !== undefined && !parameters.some(({ fields }) => fields['type'] === wanted))
      throw new GraphError(131008, {
        details: `buttons: Button at index ${index} of type ${type} requires a parameter`,
      })
  })
}

const wordOf = (value: unknown) => (typeof value === 'string' ? value : '')

const kindOf = (button: Part) => wordOf(button['type']).toUpperCase()
