import { STATUS_CODES } from 'node:http'
import { type FailureName, failures } from '@app/shared/api/problem.ts'
import { byStatus, exampleOf, exampleRequestId, generalFailures, ofBodies } from './failures.ts'
import { headersOf, type MoreHeaders } from './headers.ts'

/** `Unauthorized`, `NotFound`, … */
const nameOf = (status: number) => (STATUS_CODES[status] ?? String(status)).replaceAll(/[^A-Za-z]/g, '')

/** The refusals that many endpoints have in common, by status. */
const common = byStatus([...generalFailures, ...ofBodies])

export function generalResponses(): Record<string, object> {
  const responses = Object.fromEntries([...common].map(([status, names]) => [nameOf(status), refusalOf(status, names)]))
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
  return { ...responses, Refused: { description: 'The request was refused.', headers: headersOf(401), content } }
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
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(names.map((name) => [name, exampleOf(name)])),
      },
    },
  }
}

/** The answer of an endpoint that succeeds: one resource, or a page of them. */
export function successOf(
  status: number,
  schema: object,
  isList: boolean,
  more: MoreHeaders,
  example: unknown,
): object {
  const properties = {
    data: isList ? { type: 'array', items: schema } : schema,
    ...(isList && pageProperties),
    request_id: { type: 'string', description: 'Equal to `X-Request-Id`, but on a replay: there it is the first one.' },
  }
  const page = isList ? { data: [example], has_more: false, next_cursor: null } : { data: example }
  return {
    description: STATUS_CODES[status] ?? String(status),
    headers: headersOf(status, more),
    content: {
      'application/json': {
        schema: { type: 'object', properties, required: Object.keys(properties) },
        ...(example !== undefined && { example: { ...page, request_id: exampleRequestId } }),
      },
    },
  }
}

/** What the client has already. */
export const notModified = { description: 'Not Modified.', headers: headersOf(304, { etag: true }) }

const pageProperties = {
  has_more: { type: 'boolean' },
  next_cursor: { type: ['string', 'null'], description: 'The `cursor` of the next page; null at the end.' },
}
