import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

interface Response {
  $ref?: string
  content?: { 'application/json'?: { examples?: Record<string, { value: Failure }> } }
}

/** The envelope of a failure. */
interface Failure {
  error: { code: string }
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>
  components: {
    responses: Record<string, Response>
    schemas: Record<string, { properties?: Record<string, unknown> }>
  }
}

const document = JSON.parse(readFileSync(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8')) as Document
const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
ajv.addSchema(document, 'api')
const validators = new Map<string, ValidateFunction>()

const templates = Object.keys(document.paths).map((template) => ({
  template,
  pattern: new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  fixed: template.split('/').filter((segment) => !segment.startsWith('{')).length,
}))

/** The fields that a component's schema does not name. */
export const unsaid = (component: string, value: object): string[] => {
  const { properties = {} } = document.components.schemas[component] ?? {}
  return Object.keys(value).filter((field) => !(field in properties))
}

/**
 * Holds a JSON answer against our own OpenAPI: the operation exists, lists the status and, of a failure, the code, and its
 * schema fits the body.
 */
export function checkAnswer(method: string, path: string, status: number, body: unknown): void {
  const template = templates
    .filter(({ pattern }) => pattern.test(path))
    .toSorted((a, b) => b.fixed - a.fixed)
    .find((candidate) => method.toLowerCase() in (document.paths[candidate.template] ?? {}))?.template
  // No operation: whatever it is, the answer is the one for unknown things.
  if (template === undefined) {
    if (status !== 404 && status !== 401) throw new Error(`${method} ${path} is no operation and answered ${status}`)
    return
  }
  const responses = document.paths[template]?.[method.toLowerCase()]?.responses ?? {}
  const listed = [String(status), `${Math.floor(status / 100)}XX`].find((one) => one in responses)
  const response = listed === undefined ? undefined : responses[listed]
  if (listed === undefined || !response)
    throw new Error(`${method} ${template} answered ${status}, which its OpenAPI does not list`)
  const place = response.$ref?.slice('#/'.length).split('/') ?? pointerOf(template, method, listed)
  const validate = validatorAt([...place, 'content', 'application/json', 'schema'])
  if (!validate(body))
    throw new Error(`${method} ${template} ${status}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(body)}`)
  const codes = codesOf(response)
  const { code } = (body as Partial<Failure>).error ?? {}
  if (codes !== null && !codes.includes(code ?? ''))
    throw new Error(`${method} ${template} ${status}: its OpenAPI does not list ${code ?? 'an answer without a code'}`)
}

/** What is wrong with a JSON answer by our own OpenAPI, whatever the path's query is; null: nothing. */
export function misfitOf(method: string, path: string, status: number, text: string): string | null {
  try {
    checkAnswer(method, path.split('?')[0] ?? '', status, JSON.parse(text))
    return null
  } catch (err) {
    return String(err)
  }
}

/** The codes that a refusal may have, which stand in its examples; null where it has none. */
function codesOf(response: Response): string[] | null {
  const { content } = response.$ref
    ? (document.components.responses[response.$ref.split('/').at(-1) ?? ''] ?? {})
    : response
  const { examples } = content?.['application/json'] ?? {}
  return examples ? Object.values(examples).map(({ value }) => value.error.code) : null
}

const pointerOf = (template: string, method: string, listed: string) => [
  'paths',
  template,
  method.toLowerCase(),
  'responses',
  listed,
]

function validatorAt(pointer: string[]): ValidateFunction {
  const reference = `api#/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`
  const known = validators.get(reference)
  if (known) return known
  const validate = ajv.compile({ $ref: reference })
  validators.set(reference, validate)
  return validate
}
