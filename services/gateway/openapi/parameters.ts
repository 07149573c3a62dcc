import type { Http, Rpc } from '@app/shared/api/contract.ts'
import { pageSizes } from '@app/shared/api/page.ts'
import type { Schemas } from './schemas.ts'

export const apiKey = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'svc_live_ and 24 URL-safe base64 characters',
  description: 'An API key of the organization.',
}

export const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Makes a repetition of the request safe for 24 hours: it is answered with the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
  example: '5f1a9c1e-8f3f-4c64-a8a5-0f2f0c2f2b8d',
}

export const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of the answer that you have: 304 when it is still the same.',
  schema: { type: 'string' },
  example: 'W/"2jmj7l5rSw0yVb_vlWAYkK_YBwk"',
}

/** Path and query parameters of an endpoint, the idempotency key of a POST, the known tag of what has one. */
export function parametersOf({ params, query }: Rpc, { method, etag }: Http, schemas: Schemas): object[] {
  return [
    ...placed('path', schemas.of(params, 'input')),
    ...placed('query', schemas.of(query, 'input')),
    ...(method === 'POST' ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
    ...(etag ? [{ $ref: '#/components/parameters/IfNoneMatch' }] : []),
  ]
}

/** A query carries text; what is a number to those who write it is described as one, for clients made of the description. */
const numbers: Record<string, object> = {
  limit: { type: 'integer', minimum: 1, maximum: pageSizes.most, default: pageSizes.usual },
}

function placed(place: 'path' | 'query', { properties = {}, required = [] }: ReturnType<Schemas['of']>) {
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description && { description }),
    schema: numbers[name] ?? schema,
  }))
}
