import type { App } from '../app.ts'
import { lengthOf, optionalList, optionalObject, optionalText, type Param, requiredText } from '../graph/params.ts'
import { checkButtons } from './check-buttons.ts'
import { requiredWordOf } from './required-word-of.ts'
import type { Template } from './template.ts'
import { subcodes, templateError } from './template-error.ts'
import { hasTooManyVariables, variableIsAtTheEdge, variablesOf, variablesTouch, wrongVariables } from './variables.ts'

type Definition = Pick<Template, 'category' | 'parameterFormat'>

const componentTypes = ['HEADER', 'BODY', 'FOOTER', 'BUTTONS'] as const
const headerFormats = ['TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT', 'LOCATION'] as const
const maxLength = { header: 60, body: 1024, footer: 60 }

/** The rules of a template's components. @throws 100 with the platform's subcode where it is known */
export function checkComponents(app: App, definition: Param, { category, parameterFormat }: Definition) {
  const components = optionalList(definition, 'components')
  const seen = new Map<string, Param>()
  for (const component of components) {
    const type = requiredWordOf(component, 'type', componentTypes)
    if (seen.has(type)) throw templateError(undefined, 'Component is repeated', `A template has one ${type} at most.`)
    seen.set(type, component)
  }
  const [header, body, footer, buttons] = componentTypes.map((type) => seen.get(type))
  if (!body) throw templateError(subcodes.body, 'Body is missing', 'A template needs a component of type BODY.')
  if (category === 'AUTHENTICATION') return checkAuthentication(body, header, buttons)
  checkBody(body, parameterFormat)
  if (header) checkHeader(app, header, parameterFormat)
  if (footer) checkFooter(footer)
  if (buttons) checkButtons(buttons)
}

/** The platform writes the text of these itself. */
function checkAuthentication(body: Param, header: Param | undefined, buttons: Param | undefined) {
  if (header ?? optionalText(body, 'text'))
    throw templateError(
      subcodes.body,
      'Text is fixed',
      'An authentication template has no header and no text of its own.',
    )
  const [button] = buttons ? optionalList(buttons, 'buttons') : []
  if (!button) throw templateError(undefined, 'Button is missing', 'An authentication template needs one OTP button.')
  requiredWordOf(button, 'type', ['OTP'])
  requiredWordOf(button, 'otp_type', ['COPY_CODE', 'ONE_TAP', 'ZERO_TAP'])
}

function checkBody(body: Param, format: Template['parameterFormat']) {
  const text = requiredText(body, 'text')
  if (lengthOf(text) > maxLength.body)
    throw templateError(subcodes.length, 'Body is too long', `The body has more than ${maxLength.body} characters.`)
  const wrong = wrongVariables(text, format)
  if (wrong !== undefined) throw templateError(subcodes.body, 'Variables are wrong', wrong)
  if (variableIsAtTheEdge(text))
    throw templateError(subcodes.variableAtTheEdge, 'Variable at the edge', 'Variables cannot begin or end the body.')
  if (variablesTouch(text)) throw templateError(subcodes.body, 'Variables touch', 'Put words between two variables.')
  if (hasTooManyVariables(text))
    throw templateError(
      subcodes.tooManyVariables,
      'Too many variables',
      'The body has too many variables for its length.',
    )
  checkExamples(body, 'body', variablesOf(text), format)
}

function checkHeader(app: App, header: Param, format: Template['parameterFormat']) {
  const kind = requiredWordOf(header, 'format', headerFormats)
  if (kind === 'LOCATION') return
  if (kind !== 'TEXT') return checkSample(app, header)
  const text = requiredText(header, 'text')
  if (lengthOf(text) > maxLength.header)
    throw templateError(
      subcodes.length,
      'Header is too long',
      `The header has more than ${maxLength.header} characters.`,
    )
  const wrong = wrongVariables(text, format)
  if (wrong !== undefined || variablesOf(text).length > 1 || /[\n*_~]/.test(text.replaceAll(/\{\{.*?\}\}/g, '')))
    throw templateError(
      subcodes.header,
      'Header is wrong',
      wrong ?? 'A header has at most one variable, one line and no markup.',
    )
  checkExamples(header, 'header', variablesOf(text), format)
}

/** A header with a file needs a sample: a handle that the resumable upload answered. */
function checkSample({ uploads }: App, header: Param) {
  const example = optionalObject(header, 'example')
  const handles = example?.fields['header_handle']
  const [handle] = Array.isArray(handles) ? handles : [handles]
  if (typeof handle !== 'string' || !uploads.sampleOf(handle))
    throw templateError(
      subcodes.header,
      'Sample is missing',
      'A header with media needs example.header_handle, a handle.',
    )
}

function checkFooter(footer: Param) {
  const text = requiredText(footer, 'text')
  if (lengthOf(text) > maxLength.footer)
    throw templateError(
      subcodes.length,
      'Footer is too long',
      `The footer has more than ${maxLength.footer} characters.`,
    )
  if (variablesOf(text).length > 0)
    throw templateError(subcodes.footer, 'Footer has variables', 'A footer has no variables.')
}

/** Each variable needs an example: `header_text`, `body_text` (a list in a list), or those with `_named_params`. */
function checkExamples(component: Param, part: 'header' | 'body', variables: string[], format: string) {
  if (variables.length === 0) return
  const example = optionalObject(component, 'example')
  const given = example ? examplesOf(example, part, format) : []
  if (given.length < variables.length || (format === 'NAMED' && variables.some((name) => !given.includes(name))))
    throw templateError(
      subcodes[part],
      'Examples are missing',
      `Give an example for each variable of the ${part}: ${variables.join(', ')}.`,
    )
}

function examplesOf(example: Param, part: 'header' | 'body', format: string): unknown[] {
  if (format === 'NAMED')
    return optionalList(example, `${part}_text_named_params`).map(({ fields }) => fields['param_name'])
  const texts = example.fields[`${part}_text`]
  if (!Array.isArray(texts)) return []
  return part === 'body' && Array.isArray(texts[0]) ? texts[0] : texts
}
