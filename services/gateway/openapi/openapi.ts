import { type Http, isRpc, type Rpc } from '@app/shared/api/contract.ts'
import { exampleRequestId } from './failures.ts'
import { headers } from './headers.ts'
import { operationOf } from './operation.ts'
import { apiKey, idempotencyKey, ifNoneMatch } from './parameters.ts'
import { generalResponses, refusalsOf } from './responses.ts'
import { createSchemas, errorSchemas } from './schemas.ts'
import { passthroughParts } from './passthrough.ts'
import { eventsTag, webhooksOf } from './webhooks.ts'

/** A contract with the name under which its module exports it. */
interface Endpoint {
  name: string
  contract: Rpc
  http: Http
}

/** The public API as OpenAPI 3.1, made of the same contracts as the routes. `publicUrl` is the address that clients use. */
export function openapi(modules: object[], publicUrl: string): object {
  const endpoints = modules.flatMap((module) => Object.entries(module)).flatMap(endpointOf)
  const schemas = createSchemas()
  const paths: Record<string, Record<string, object>> = {
    '/health': { get: health },
    '/openapi.json': { get: description },
  }
  for (const { name, contract, http } of endpoints) {
    const operations = (paths[http.path] ??= {})
    operations[http.method.toLowerCase()] = operationOf(name, contract, http, schemas)
  }
  const webhooks = webhooksOf(modules, schemas)
  const tags = new Set(['Meta', ...endpoints.map(({ http }) => http.tag)])
  return {
    openapi: '3.1.0',
    info: infoOf(publicUrl),
    servers: [{ url: `${publicUrl}/v1`, description: 'This installation' }],
    tags: [
      ...[...tags].map((name) => ({ name, description: `Endpoints of the group ${name}.` })),
      { name: eventsTag, description: 'What is POSTed to the URL of a webhook subscription.' },
    ],
    security: [{ apiKey: [] }],
    paths,
    webhooks,
    components: {
      securitySchemes: { apiKey },
      parameters: { IdempotencyKey: idempotencyKey, IfNoneMatch: ifNoneMatch },
      headers,
      responses: generalResponses(),
      schemas: { ...errorSchemas, ...passthroughParts, ...schemas.components },
    },
  }
}

function endpointOf([name, contract]: [string, unknown]): Endpoint[] {
  return isRpc(contract) && contract.http ? [{ name, contract, http: contract.http }] : []
}

const infoOf = (publicUrl: string) => ({
  title: 'Messaging Service Public API',
  version: '1.0.0',
  summary: 'Messages, conversations and contacts of connected business phone numbers, and signed webhooks.',
  description: guide,
  contact: { name: 'The operator of this installation', url: publicUrl },
  license: { name: 'UNLICENSED', identifier: 'LicenseRef-UNLICENSED' },
})

const guide = `
Every answer carries \`request_id\`, which the header \`X-Request-Id\` repeats. A resource comes as \`{data, request_id}\`, a
list as \`{data, has_more, next_cursor, request_id}\`, a failure as \`{error: {type, code, message, param?, request_id}}\`.
Fields, endpoints and error codes may be added at any time: ignore what you do not know.

**Authentication.** \`Authorization: Bearer <API_KEY>\`, and nowhere else. A key belongs to one organization.

**Idempotency.** Every POST takes \`Idempotency-Key\`. The same key with the same method, path, query and body is answered
with the first answer for 24 hours, marked by the header \`Idempotent-Replayed\`. Only successes are remembered.

**Rate limits.** Each key has a budget of reads (GET) and one of writes a minute, which may be spent in a burst. Every
authenticated answer tells how its budget stands. On 429 and 503 wait as long as \`Retry-After\` says.

**Lists.** \`limit\` is 1 to 100. Pass \`next_cursor\` back as \`cursor\`, with the same filters. Unknown query parameters are
ignored.

**Not found** is also what belongs to somebody else, what is malformed, and a method that a path does not have.
`.trim()

const requestIdHeader = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }

const health = {
  operationId: 'getHealth',
  summary: 'Whether the API is alive',
  description: 'Liveness alone: it answers 200 whatever else is down.',
  tags: ['Meta'],
  security: [],
  responses: {
    200: {
      description: 'OK',
      headers: requestIdHeader,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: { status: { const: 'ok' }, request_id: { type: 'string' } },
            required: ['status', 'request_id'],
          },
          example: { status: 'ok', request_id: exampleRequestId },
        },
      },
    },
    ...refusalsOf(['invalid_field_value', 'uri_too_long', 'headers_too_large']),
  },
}

const description = {
  operationId: 'getOpenapi',
  summary: 'This description',
  description: 'OpenAPI 3.1, made of the same declarations as the routes.',
  tags: ['Meta'],
  security: [],
  responses: {
    200: {
      description: 'OK',
      headers: requestIdHeader,
      content: { 'application/json': { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } } },
    },
    ...refusalsOf(['invalid_field_value', 'uri_too_long', 'headers_too_large', 'service_unavailable']),
  },
}
