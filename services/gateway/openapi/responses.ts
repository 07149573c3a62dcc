import { STATUS_CODES } from 'node:http'
import { type FailureName, failures } from '@app/shared/api/problem.ts'
import { byStatus, exampleOf, exampleRequestId, generalFailures, ofBodies } from './failures.ts'
import { headersOf, type MoreHeaders } from './headers.ts'
import { nameOf as nameOfSchema, type Reference, referenceTo, type Schemas } from './schemas.ts'

/** `Unauthorized`, `NotFound`, … */
const nameOf = (status: number) => (STATUS_CODES[status] ?? String(status)).replaceAll(/[^A-Za-z]/g, '')

/** The refusals that many endpoints have in common, by status. */
const common = byStatus([...generalFailures, ...ofBodies])

export function generalResponses(): Record<string, object> {
  return Object.fromEntries([...common].map(([status, names]) => [nameOf(status), refusalOf(status, names)]))
}

/** The responses of an endpoint that fails with these names. */
export function refusalsOf(names: FailureName[]): Record<number, object> {
  const entries = [...byStatus(names)].map(([status, group]) => {
    const isCommon = common.get(status)?.join() === group.join()
    return [status, isCommon ? { $ref: `#/components/responses/${nameOf(status)}` } : refusalOf(status, group)]
  })
  return Object.fromEntries(entries) as Record<number, object>
}

function refusalOf(status: number, names: FailureName[]) {
  const codes = [...new Set(names.map((name) => failures[name].code))].map((code) => `\`${code}\``)
  return {
    description: `${STATUS_CODES[status]}: ${codes.join(', ')}.`,
    headers: headersOf(status),
    content: {
      'application/json': {
        schema: referenceTo('ErrorResponse'),
        examples: Object.fromEntries(names.map((name) => [name, exampleOf(name)])),
      },
    },
  }
}

/** The envelope of an answer: one resource, or a page of them. A component, named by what it holds. */
export function envelopeOf(resource: Reference, isList: boolean, schemas: Schemas): Reference {
  const properties = {
    data: isList ? { type: 'array', items: resource } : resource,
    ...(isList && pageProperties),
    request_id: { type: 'string', description: 'Equal to `X-Request-Id`, but on a replay: there it is the first one.' },
  }
  const name = `${nameOfSchema(resource)}${isList ? 'List' : ''}Response`
  return schemas.named(name, { type: 'object', properties, required: Object.keys(properties) })
}

/** The answer of an endpoint that succeeds. */
export function successOf(status: number, schema: Reference, more: MoreHeaders, example: object | undefined): object {
  return {
    description: STATUS_CODES[status] ?? String(status),
    headers: headersOf(status, more),
    content: { 'application/json': { schema, ...(example && { example }) } },
  }
}

/** An answer of the example. */
export function exampleAnswer(example: unknown, isList: boolean): object | undefined {
  if (example === undefined) return undefined
  const page = isList ? { data: [example], has_more: false, next_cursor: null } : { data: example }
  return { ...page, request_id: exampleRequestId }
}

/** What the client has already. */
export const notModified = { description: 'Not Modified.', headers: headersOf(304, { etag: true }) }

const pageProperties = {
  has_more: { type: 'boolean' },
  next_cursor: { type: ['string', 'null'], description: 'The `cursor` of the next page; null at the end.' },
}
