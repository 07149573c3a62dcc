import type { Http, Rpc } from '@app/shared/api/contract.ts'
import { type FailureName, failures } from '@app/shared/api/problem.ts'

export const exampleRequestId = 'req_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'

/** What any endpoint that needs a key may answer. */
export const generalFailures: FailureName[] = [
  'invalid_field_value',
  'missing_api_key',
  'invalid_api_key',
  'revoked_api_key',
  'expired_api_key',
  'resource_not_found',
  'request_timeout',
  'uri_too_long',
  'rate_limit_exceeded',
  'headers_too_large',
  'internal_error',
  'service_unavailable',
]

/** Everything that an endpoint may answer instead of success. */
export function failuresOf({ errors, query, body }: Rpc, { method, feature }: Http): FailureName[] {
  const names = new Set([...generalFailures, ...errors])
  if ('cursor' in query.shape) for (const name of ofLists) names.add(name)
  if (feature !== undefined) names.add('feature_not_entitled')
  if (method === 'POST') for (const name of ofKeys) names.add(name)
  if (body.type !== 'undefined') for (const name of ofBodies) names.add(name)
  return [...names]
}

const ofLists: FailureName[] = ['invalid_limit', 'invalid_cursor']
const ofKeys: FailureName[] = ['idempotency_in_progress', 'idempotency_key_reuse']
export const ofBodies: FailureName[] = ['payload_too_large', 'unsupported_media_type']

/** Names by the status that they answer with, lowest first. */
export function byStatus(names: FailureName[]): Map<number, FailureName[]> {
  const statuses = new Set(names.map((name) => failures[name].status).toSorted((a, b) => a - b))
  return new Map(
    [...statuses].map((status) => [status, names.filter((name) => failures[name].status === status).toSorted()]),
  )
}

/** The envelope of a failure, as an example. */
export function exampleOf(name: FailureName): object {
  const { type, code, message } = failures[name]
  return { summary: message, value: { error: { type, code, message, request_id: exampleRequestId } } }
}
