import { invalidField } from '@app/shared/api/problem.ts'
import { urlIn } from '@app/shared/values/web-address.ts'
import { checkButtons } from './check-buttons.ts'
import { invalidIn, type Part, partOf, partsOf, textOf, wordOf } from './part.ts'
import { faultOfVariables, hasVariableAtEdge, type ParameterFormat, variablesOf } from './variables.ts'

/** A component as it came: what we know of it is checked, the rest goes on as it is. */
export interface Component extends Readonly<Record<string, unknown>> {
  type: string
}

export interface Draft {
  category: 'MARKETING' | 'UTILITY' | 'AUTHENTICATION'
  format: ParameterFormat
  components: readonly Component[]
}

/** The lengths of the platform's documentation of templates. */
const longest = { headerText: 60, body: 1024, footer: 60 }

const types = ['HEADER', 'BODY', 'FOOTER', 'BUTTONS', 'LIMITED_TIME_OFFER', 'CAROUSEL', 'CALL_PERMISSION_REQUEST']

/** The platform's rules of a template, as far as they can be told without it; refuses with the field that breaks one. */
export function checkComponents({ category, format, components }: Draft): void {
  const seen = new Set<string>()
  for (const [n, fields] of components.entries()) {
    const part: Part = { path: `components[${n}]`, fields }
    const type = wordOf(part, 'type')
    if (!types.includes(type)) throw invalidIn(part, 'type', `must be one of ${types.join(', ')}`)
    if (seen.has(type)) throw invalidIn(part, 'type', `is ${type} a second time`)
    seen.add(type)
    if (type === 'HEADER') checkHeader(part, format)
    // The texts of a template for codes are the platform's own.
    else if (type === 'BODY' && (category !== 'AUTHENTICATION' || fields['text'] !== undefined))
      checkBody(part, format, category)
    else if (type === 'FOOTER' && (category !== 'AUTHENTICATION' || fields['text'] !== undefined)) checkFooter(part)
    else if (type === 'BUTTONS') checkButtons(part)
  }
  if (!seen.has('BODY')) throw invalidField('components', 'components must hold exactly one BODY.')
}

const mediaFormats = ['IMAGE', 'VIDEO', 'DOCUMENT']
const headerFormats = ['TEXT', ...mediaFormats, 'LOCATION']

function checkHeader(part: Part, format: ParameterFormat) {
  const kind = wordOf(part, 'format')
  if (!headerFormats.includes(kind)) throw invalidIn(part, 'format', `must be one of ${headerFormats.join(', ')}`)
  if (mediaFormats.includes(kind)) return checkSample(partOf(part, 'example'))
  if (kind !== 'TEXT') return
  const text = textOf(part, 'text', longest.headerText)
  refuseFault(part, text, format)
  const names = variablesOf(text)
  if (names.length > 1) throw invalidIn(part, 'text', 'must have at most one variable')
  if (names.length === 0) return
  const example = partOf(part, 'example')
  if (format === 'named') return checkNamedExamples(example, 'header_text_named_params', names)
  checkTexts(example, 'header_text', example.fields['header_text'], 1)
}

/** The sample of a media header: a handle of the platform, or an address that we upload. */
function checkSample(example: Part) {
  const { header_handle: handle, header_url: url } = example.fields
  if (url !== undefined && handle !== undefined)
    throw invalidIn(example, 'header_url', 'must not stand beside header_handle')
  if (handle === undefined) {
    if (typeof url !== 'string' || url.length > 2000 || !isOfWeb(url))
      throw invalidIn(example, 'header_url', 'must be the https URL of a sample')
    return
  }
  checkTexts(example, 'header_handle', handle, 1)
}

const isOfWeb = (url: string) => ['https:', 'http:'].includes(urlIn(url)?.protocol ?? '')

function checkBody(part: Part, format: ParameterFormat, category: Draft['category']) {
  const text = textOf(part, 'text', longest.body)
  refuseFault(part, text, format)
  if (category === 'AUTHENTICATION') return
  if (hasVariableAtEdge(text)) throw invalidIn(part, 'text', 'must not begin or end with a variable')
  const names = variablesOf(text)
  if (names.length === 0) return
  const example = partOf(part, 'example')
  if (format === 'named') return checkNamedExamples(example, 'body_text_named_params', names)
  const { body_text: rows } = example.fields
  checkTexts(example, 'body_text', Array.isArray(rows) ? rows[0] : undefined, names.length)
}

function checkFooter(part: Part) {
  const text = textOf(part, 'text', longest.footer)
  if (/\{\{|\}\}/.test(text)) throw invalidIn(part, 'text', 'must not have variables')
}

function refuseFault(part: Part, text: string, format: ParameterFormat) {
  const fault = faultOfVariables(text, format)
  if (fault !== null) throw invalidIn(part, 'text', fault)
}

/** An example for each variable; `body_text` has them in a list of lists, of which the first counts. */
function checkTexts(example: Part, key: string, texts: unknown, count: number) {
  const fits =
    Array.isArray(texts) && texts.length === count && texts.every((text) => typeof text === 'string' && text !== '')
  if (fits) return
  const list = count === 1 ? '["…"]' : '["…", …]'
  const form = key === 'body_text' ? `[${list}]` : list
  const examples = count === 1 ? 'example' : 'examples, one a variable'
  throw invalidIn(example, key, `must give ${count} ${examples}, in the form ${form}`)
}

function checkNamedExamples(example: Part, key: string, names: string[]) {
  const given = partsOf(example, key)
  for (const part of given) {
    if (!names.includes(String(part.fields['param_name'])))
      throw invalidIn(part, 'param_name', 'must be the name of a variable of the text')
    textOf(part, 'example', 1024)
  }
  const missing = names.find((name) => !given.some(({ fields }) => fields['param_name'] === name))
  if (missing !== undefined) throw invalidIn(example, key, `must give an example of ${missing}`)
}
