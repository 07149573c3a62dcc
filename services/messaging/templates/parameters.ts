import { Problem } from '@app/shared/api/problem.ts'
import { type Component } from './check-components.ts'
import { fillBody } from './fill-body.ts'
import { bodyOf, componentOf } from './templates.ts'
import { type ParameterFormat, variablesOf } from './variables.ts'

/** What a template takes when it is sent. */
export interface Shape {
  format: ParameterFormat
  body: string
  bodyVariables: string[]
  headerVariables: string[]
  /** `image`, `video`, `document` or `location`, which the header takes one of. */
  headerKind: string | null
  /** By the button's index. */
  buttons: ButtonShape[]
}

interface ButtonShape {
  /** The parameters that it must have, or null when it takes any number. */
  takes: number | null
  /** What the send calls it; null where we do not know. */
  subType: string | null
  /** What its parameters are; null where we do not know. */
  parameterType: string | null
}

interface SentParameter {
  type: string
  parameter_name?: string | undefined
  text?: string | undefined
  currency?: { fallback_value: string } | undefined
  date_time?: { fallback_value: string } | undefined
}

export interface SentComponent {
  type: string
  sub_type?: string | undefined
  index?: string | number | undefined
  parameters?: readonly SentParameter[] | undefined
}

export function shapeOf(components: readonly Component[], format: ParameterFormat): Shape {
  const header = componentOf(components, 'HEADER')
  const kind = (textOf(header?.['format']) || 'text').toLowerCase()
  const body = bodyOf(components)
  const buttons = componentOf(components, 'BUTTONS')?.['buttons']
  return {
    format,
    body,
    bodyVariables: variablesOf(body),
    headerVariables: kind === 'text' ? variablesOf(textOf(header?.['text'])) : [],
    headerKind: kind === 'text' ? null : kind,
    buttons: Array.isArray(buttons) ? buttons.map((button: Record<string, unknown>) => buttonOf(button)) : [],
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

const words: ReadonlyMap<string, [subType: string, parameterType: string | null]> = new Map([
  ['QUICK_REPLY', ['quick_reply', null]],
  ['URL', ['url', 'text']],
  // A button for codes is one with a URL, to the platform.
  ['OTP', ['url', 'text']],
  ['COPY_CODE', ['copy_code', 'coupon_code']],
  ['FLOW', ['flow', null]],
  ['CATALOG', ['catalog', null]],
  ['MPM', ['mpm', null]],
])

function buttonOf(button: Readonly<Record<string, unknown>>): ButtonShape {
  const type = textOf(button['type']).toUpperCase()
  const [subType = null, parameterType = null] = words.get(type) ?? []
  return { takes: countOf(type, button), subType, parameterType }
}

/** A quick reply's payload, and a flow's or catalog's action, may be left out. */
function countOf(type: string, button: Readonly<Record<string, unknown>>): number | null {
  if (type === 'URL') return variablesOf(textOf(button['url'])).length
  if (type === 'COPY_CODE' || type === 'OTP') return 1
  return type === 'PHONE_NUMBER' ? 0 : null
}

/**
 * Holds the components of a send against the template, and answers the body's text with its values.
 * @throws `template_param_count_mismatch`, `template_param_format_mismatch`, and `invalid_field_value` for a text that is too long,
 * with the parameters that do not fit.
 */
export function fit(shape: Shape, components: readonly SentComponent[]): string {
  const sent = components.map(({ type, sub_type: subType, index, parameters = [] }, n) => ({
    type: type.toLowerCase(),
    subType: subType?.toLowerCase(),
    index: Number(index ?? 0),
    parameters,
    component: `template.components[${n}]`,
    param: `template.components[${n}].parameters`,
  }))
  const find = (type: string) => sent.find((component) => component.type === type)
  const header = find('header')
  if (shape.headerKind === null) fitTexts(shape.format, 'header', shape.headerVariables, header)
  else fitMedia(shape.headerKind, header)
  const body = find('body')
  const values = fitTexts(shape.format, 'body', shape.bodyVariables, body)
  fitButtons(shape, sent)
  refuseSpare(sent)
  return fillBody(shape.body, values, body?.param ?? whole)
}

interface Placed {
  type: string
  subType: string | undefined
  index: number
  parameters: readonly SentParameter[]
  /** Where it stands in the request, and where they do. */
  component: string
  param: string
}

const whole = 'template.components'

const countMismatch = (what: string, takes: number, given: number, param = whole) =>
  new Problem('template_param_count_mismatch', {
    param,
    message: `${param}: the ${what} of the template takes ${takes} ${takes === 1 ? 'parameter' : 'parameters'}, not ${given}.`,
  })

const formatMismatch = (param: string, what: string) =>
  new Problem('template_param_format_mismatch', { param, message: `${param} ${what}.` })

function fitTexts(format: ParameterFormat, what: string, variables: readonly string[], component: Placed | undefined) {
  const parameters = component?.parameters ?? []
  if (parameters.length !== variables.length)
    throw countMismatch(what, variables.length, parameters.length, component?.param)
  for (const [n, { type }] of parameters.entries())
    if (!textTypes.has(type.toLowerCase()))
      throw formatMismatch(`${component?.param ?? whole}[${n}].type`, 'must be text, currency or date_time')
  return new Map(
    parameters.map((parameter, n) => [nameOf(format, variables, parameters, n, component), valueOf(parameter)]),
  )
}

/** What a variable of a text takes. */
const textTypes = new Set(['text', 'currency', 'date_time'])

/** Positional ones by their order; a named one must name a variable, and none twice. */
function nameOf(
  format: ParameterFormat,
  variables: readonly string[],
  parameters: readonly SentParameter[],
  n: number,
  component: Placed | undefined,
): string {
  if (format === 'positional') return variables[n] ?? ''
  const name = parameters[n]?.parameter_name
  const param = `${component?.param ?? whole}[${n}].parameter_name`
  if (name === undefined || !variables.includes(name))
    throw formatMismatch(param, `must be one of ${variables.join(', ')}`)
  if (parameters.findIndex((parameter) => parameter.parameter_name === name) !== n)
    throw formatMismatch(param, `names ${name} a second time`)
  return name
}

const valueOf = ({ text, currency, date_time: dateTime }: SentParameter) =>
  text ?? currency?.fallback_value ?? dateTime?.fallback_value ?? ''

function fitMedia(kind: string, header: Placed | undefined) {
  const [parameter, another] = header?.parameters ?? []
  if (!header || !parameter || another) throw countMismatch('header', 1, header?.parameters.length ?? 0, header?.param)
  if (parameter.type.toLowerCase() !== kind) throw formatMismatch(`${header.param}[0].type`, `must be ${kind}`)
}

function fitButtons({ buttons }: Shape, sent: readonly Placed[]) {
  const given = sent.filter(({ type }) => type === 'button')
  for (const component of given) {
    const { index, parameters, param } = component
    const button = buttons[index]
    if (button === undefined) throw countMismatch(`button ${index}`, 0, parameters.length, param)
    if (parameters.length > 0 || button.takes !== 0) fitWords(button, component)
  }
  for (const [index, { takes }] of buttons.entries()) {
    const button = given.find((component) => component.index === index)
    const count = button?.parameters.length ?? 0
    if (takes !== null && count !== takes) throw countMismatch(`button ${index}`, takes, count, button?.param)
  }
}

function fitWords({ subType, parameterType }: ButtonShape, button: Placed) {
  if (subType !== null && button.subType !== subType)
    throw formatMismatch(
      `${button.component}.sub_type`,
      `must be ${subType}, as button ${button.index} of the template is`,
    )
  for (const [n, { type }] of button.parameters.entries()) {
    if (parameterType !== null && type.toLowerCase() !== parameterType)
      throw formatMismatch(`${button.param}[${n}].type`, `must be ${parameterType}`)
  }
}

/** What stands in the footer, or in a component that was there before, no variable takes. */
function refuseSpare(sent: readonly Placed[]) {
  const seen = new Set(['footer'])
  for (const { type, index, parameters, param } of sent) {
    const place = type === 'button' ? `button ${index}` : type
    if (seen.has(place) && parameters.length > 0) {
      const what = type === 'footer' ? place : `second ${place}`
      throw countMismatch(what, 0, parameters.length, param)
    }
    seen.add(place)
  }
}
