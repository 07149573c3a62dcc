import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A JSON schema, as far as our own OpenAPI uses it; nothing in it refers to anything any more. */
export interface Schema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  not?: Schema
  enum?: string[]
  const?: string
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  schema: Schema
}

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** One operation of the public API. */
export interface Operation {
  /** `POST /labels` */
  name: string
  method: Method
  path: string
  pathParameters: Parameter[]
  queryParameters: Parameter[]
  takesKey: boolean
  /** Of a JSON body; null when it takes none. */
  body: Schema | null
  example: unknown
  takesFile: boolean
  isPublic: boolean
}

interface RawOperation {
  parameters?: Parameter[]
  security?: unknown[]
  requestBody?: { content: Record<string, { schema: Schema; example?: unknown }> }
}

const file = join(import.meta.dirname, '../../docs/openapi.json')
const document = JSON.parse(readFileSync(file, 'utf8')) as { paths: Record<string, Record<string, unknown>> }

/** Every operation that our own OpenAPI describes. */
export const operations: Operation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, raw]) =>
    toOperation(path, method.toUpperCase() as Method, resolve(raw) as RawOperation),
  ),
)

function toOperation(path: string, method: Method, raw: RawOperation): Operation {
  const { parameters = [], requestBody } = raw
  const json = requestBody?.content['application/json']
  const placed = (place: Parameter['in']) => parameters.filter((parameter) => parameter.in === place)
  return {
    name: `${method} ${path}`,
    method,
    path,
    pathParameters: placed('path'),
    queryParameters: placed('query'),
    takesKey: placed('header').some(({ name }) => name === 'Idempotency-Key'),
    body: json?.schema ?? null,
    example: json?.example,
    takesFile: requestBody?.content['multipart/form-data'] !== undefined,
    isPublic: raw.security?.length === 0,
  }
}

/** The value with what its `$ref`s refer to in their place. */
function resolve(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(resolve)
  if (typeof value !== 'object' || value === null) return value
  if ('$ref' in value && typeof value.$ref === 'string') return resolve(at(value.$ref))
  const { type, ...rest } = value as { type?: unknown }
  // A list of types is a choice between them.
  if (Array.isArray(type)) return { anyOf: type.map((one: unknown) => resolve({ ...rest, type: one })) }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item)]))
}

function at(reference: string) {
  const keys = reference.slice('#/'.length).split('/')
  return keys.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], document)
}

/** The prefix of the ids that a schema takes; null when it takes none. */
export const prefixOf = ({ pattern }: Schema): string | null => /^\^(\w+?)_\[/.exec(pattern ?? '')?.[1] ?? null

/** The path of an operation with its parameters in their places. */
export const fill = (path: string, parameters: Record<string, string>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parameters[name] ?? ''))
