import { Problem } from '@app/shared/api/problem.ts'
import { type Component } from './check-components.ts'
import { bodyOf, componentOf } from './templates.ts'
import { fill, type ParameterFormat, variablesOf } from './variables.ts'

/** What a template takes when it is sent. */
export interface Shape {
  format: ParameterFormat
  body: string
  bodyVariables: string[]
  headerVariables: string[]
  /** `image`, `video`, `document` or `location`, which the header takes one of. */
  headerKind: string | null
  /** By the button's index: the parameters that it must have, or null when it takes any number. */
  buttons: Array<number | null>
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
    buttons: Array.isArray(buttons) ? buttons.map((button: Record<string, unknown>) => countOf(button)) : [],
  }
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** A quick reply's payload, and a flow's or catalog's action, may be left out. */
function countOf(button: Readonly<Record<string, unknown>>): number | null {
  const type = textOf(button['type']).toUpperCase()
  if (type === 'URL') return variablesOf(textOf(button['url'])).length
  if (type === 'COPY_CODE' || type === 'OTP') return 1
  return type === 'PHONE_NUMBER' ? 0 : null
}

/**
 * Holds the components of a send against the template, and answers the body's text with its values.
 * @throws `template_param_count_mismatch`, `template_param_format_mismatch`, with the parameters that do not fit.
 */
export function fit(shape: Shape, components: readonly SentComponent[]): string {
  const sent = components.map(({ type, index, parameters = [] }, n) => ({
    type: type.toLowerCase(),
    index: Number(index ?? 0),
    parameters,
    param: `template.components[${n}].parameters`,
  }))
  const find = (type: string) => sent.find((component) => component.type === type)
  const header = find('header')
  if (shape.headerKind === null) fitTexts(shape.format, 'header', shape.headerVariables, header)
  else fitMedia(shape.headerKind, header)
  const values = fitTexts(shape.format, 'body', shape.bodyVariables, find('body'))
  fitButtons(shape, sent)
  refuseSpare(sent)
  return fill(shape.body, values)
}

interface Placed {
  type: string
  index: number
  parameters: readonly SentParameter[]
  /** Where they stand in the request. */
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
  return new Map(
    parameters.map((parameter, n) => [nameOf(format, variables, parameters, n, component), valueOf(parameter)]),
  )
}

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
  for (const { index, parameters, param } of given) {
    if (buttons[index] === undefined) throw countMismatch(`button ${index}`, 0, parameters.length, param)
  }
  for (const [index, takes] of buttons.entries()) {
    const button = given.find((component) => component.index === index)
    const count = button?.parameters.length ?? 0
    if (takes !== null && count !== takes) throw countMismatch(`button ${index}`, takes, count, button?.param)
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
