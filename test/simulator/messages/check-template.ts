import { GraphError } from '../graph/graph-error.ts'
import {
  isFields,
  onlyKeys,
  optionalList,
  optionalText,
  type Param,
  requiredObject,
  requiredText,
  requiredWord,
} from '../graph/params.ts'
import { checkMedia } from './check-media.ts'

const componentTypes = ['header', 'body', 'footer', 'button'] as const
const buttonTypes = ['quick_reply', 'url', 'copy_code', 'phone_number', 'flow', 'catalog', 'mpm', 'voice_call'] as const

/** The block that a parameter of each type must carry, by the name of the type. */
const parameterTypes = {
  header: ['text', 'image', 'video', 'document', 'location'],
  body: ['text', 'currency', 'date_time'],
  footer: [],
  button: ['payload', 'text', 'coupon_code', 'action'],
} as const

/** The shape of a template send: what needs no knowledge of the template itself. */
export function checkTemplate(template: Param) {
  onlyKeys(template, 'name', 'language', 'components', 'namespace')
  requiredText(template, 'name', 512)
  const language = requiredObject(template, 'language')
  requiredText(language, 'code')
  if (optionalText(language, 'policy') !== undefined) requiredWord(language, 'policy', ['deterministic'])
  for (const component of optionalList(template, 'components')) checkComponent(component)
}

function checkComponent(component: Param) {
  onlyKeys(component, 'type', 'sub_type', 'index', 'parameters')
  const type = requiredWord(lowered(component, 'type'), 'type', componentTypes)
  if (type === 'button') checkButton(component)
  for (const parameter of optionalList(component, 'parameters')) checkParameter(parameter, parameterTypes[type])
}

/** Senders write these words in either case, and the platform takes both. */
function lowered({ path, fields }: Param, key: string): Param {
  const word = fields[key]
  return { path, fields: { ...fields, [key]: typeof word === 'string' ? word.toLowerCase() : word } }
}

function checkButton(component: Param) {
  requiredWord(lowered(component, 'sub_type'), 'sub_type', buttonTypes)
  const { index } = component.fields
  if (!/^\d$/.test(typeof index === 'number' ? `${index}` : requiredText(component, 'index')))
    throw new GraphError(100, { details: `Param ${component.path}['index'] must be a number from 0 to 9.` })
}

function checkParameter(parameter: Param, allowed: readonly string[]) {
  const type = requiredWord(parameter, 'type', allowed)
  const block = parameter.fields[type]
  if (block === undefined || block === null || block === '')
    throw new GraphError(100, { details: `Parameter '${type}' is mandatory for component parameter type '${type}'` })
  optionalText(parameter, 'parameter_name')
  if (type === 'image' || type === 'video' || type === 'document')
    return checkMedia(type, requiredObject(parameter, type))
  if (type === 'currency') return checkCurrency(requiredObject(parameter, type))
  if (type === 'date_time') return requiredText(requiredObject(parameter, type), 'fallback_value')
  if (type === 'location' || type === 'action') return requiredObject(parameter, type)
  if (isFields(block) || Array.isArray(block))
    throw new GraphError(132012, { details: `Parameter '${type}' must be a text.` })
  return requiredText(parameter, type)
}

function checkCurrency(currency: Param) {
  requiredText(currency, 'fallback_value')
  requiredText(currency, 'code')
  if (!Number.isInteger(currency.fields['amount_1000']))
    throw new GraphError(132012, { details: `Param ${currency.path}['amount_1000'] must be an integer.` })
}
