import fc from 'fast-check'
import { brokenBodies } from './broken-bodies.ts'
import { fill, type Operation, prefixOf, type Schema } from './document.ts'
import { mutationsOf } from './mutations.ts'
import { toJsonText } from './raw-json.ts'
import type { Request } from './request.ts'
import { queryOf, type Valid, validOf } from './valid-requests.ts'
import { knownOf } from './valid-values.ts'
import type { World } from './world.ts'

/** Requests to every operation, valid and mutated, made from our own OpenAPI. */
export function requestOf(world: World, operations: Operation[]): fc.Arbitrary<Request> {
  const known = knownOf(world)
  return fc.constantFrom(...operations).chain((operation) => {
    const valid = validOf(world, operation, known)
    const { body, queryParameters, pathParameters } = operation
    return fc.oneof(
      { weight: 4, arbitrary: valid },
      ...(body ? [{ weight: 4, arbitrary: spoiltOf(valid, body) }] : []),
      ...(queryParameters.length > 0 ? [{ weight: 2, arbitrary: ofQuery(valid) }] : []),
      ...(pathParameters.length > 0 ? [{ weight: 1, arbitrary: ofPath(valid) }] : []),
      { weight: 1, arbitrary: ofFrame(valid) },
    )
  })
}

/** Of JSON under `/v1`. */
const bodyLimitBytes = 256 * 1024

/** One field that is wrong, or a body that is no object of the kind at all. */
export const spoiltOf = (valid: fc.Arbitrary<Valid>, schema: Schema): fc.Arbitrary<Request> =>
  valid.chain((request) => {
    const mutations = mutationsOf(schema, request.value)
    const fields = mutations.map(({ what, body: value, param }) => {
      const body = Buffer.from(toJsonText(value))
      const expected = body.length > bodyLimitBytes ? { status: 413 } : { status: 400, param }
      return { ...request, what, body, expected }
    })
    const whole = brokenBodies(request.value).map(([what, body, status]) => ({
      ...request,
      what,
      body,
      expected: status === null ? {} : { status },
    }))
    const some = fc.constantFrom(...whole)
    return fields.length === 0 ? some : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...fields) }, some)
  })

/** One parameter of the query that is wrong; names that nobody knows are no fault. */
function ofQuery(valid: fc.Arbitrary<Valid>): fc.Arbitrary<Request> {
  return valid.chain((request) => {
    const { operation, names, query } = request
    const faults = operation.queryParameters.flatMap(({ name, schema }) =>
      wrongTexts(name, schema).map((text) => ({ name, text })),
    )
    const path = fill(operation.path, names)
    const odd = ['?unknown=1', '?%00=%00', '?a[b]=1&a=2', '?__proto__=1&constructor=2', '?=', '?&&&', '?limit', '?%'].map((text) => ({
      ...request,
      what: `the query ${text}`,
      path: path + text,
      expected: {},
    })) // prettier-ignore
    const wrong = faults.map(({ name, text }) => ({
      ...request,
      what: `${name} ${text.slice(0, 20)}`,
      path: `${path}${queryOf({ ...query, [name]: text })}`,
      expected: { status: 400, param: name },
    }))
    return fc.constantFrom(...odd, ...wrong)
  })
}

const tampered = Buffer.from(JSON.stringify(['k1', 'x', 'y'])).toString('base64url')

export function wrongTexts(name: string, schema: Schema): string[] {
  if (name === 'limit') return ['', '0', '101', '-1', '1.5', '1e2', ' 5', '٣', '99999999999999999999', 'x']
  if (name === 'cursor') return ['', 'x', '\0', tampered, 'é', 'x'.repeat(4_000)]
  const faults = ['a\0b']
  const prefix = prefixOf(schema)
  if (prefix)
    faults.push('', prefix, `${prefix}_`, `${prefix}_01JQ8Z6V0A7XJ2N5T9WQ3RBKC`, `${prefix}_01jq8z6v0a7xj2n5t9wq3rbkcd`)
  if (schema.enum) faults.push('', 'nonsense', 'OPEN')
  if (schema.format === 'date-time') faults.push('', 'yesterday', '2026-02-30T00:00:00Z', '2026-01-01', '1767225600')
  if (schema.minLength !== undefined && schema.minLength > 0) faults.push('')
  if (schema.maxLength !== undefined) faults.push('𝒳'.repeat(schema.maxLength + 1))
  return faults
}

/** A parameter of the path that is nobody's: the one 404. */
function ofPath(valid: fc.Arbitrary<Valid>): fc.Arbitrary<Request> {
  return valid.chain((request) => {
    const { operation, names } = request
    const wrong = operation.pathParameters.flatMap(({ name }) =>
      brokenSegments.map((segment) => ({
        ...request,
        what: `${name} ${segment.slice(0, 20)}`,
        path: operation.path.replaceAll(/\{(\w+)\}/g, (_, one: string) => (one === name ? segment : encodeURIComponent(names[one] ?? ''))),
        expected: { status: 404 },
      })),
    ) // prettier-ignore
    return fc.constantFrom(...(wrong.length === 0 ? [request] : wrong))
  })
}

/** Already encoded. What changes which operation it is stands elsewhere (hostile.test.ts). */
const brokenSegments = [
  '%00', '%', '%ff%fe', 'nonsense', '12345678901234567890', '-1', '%F0%9D%92%B3'.repeat(512), 'x'.repeat(4_000), 'hasOwnProperty',
  'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD%0A', '%2e%2e%2f', '*', "'%20or%201=1", '%E2%80%AE',
] // prettier-ignore

/** What is around the body: its type, the idempotency key, the length of it all. */
function ofFrame(valid: fc.Arbitrary<Valid>): fc.Arbitrary<Request> {
  return valid.chain((request) => {
    const { operation, headers, path, body } = request
    const frames: Request[] = [
      { ...request, what: 'large headers', headers: { ...headers, 'x-large': 'x'.repeat(40 * 1024) }, expected: { status: 431 } },
      { ...request, what: 'a long query', path: `${path}${path.includes('?') ? '&' : '?'}x=${'x'.repeat(9_000)}`, expected: operation.isPublic ? {} : { status: 414 } },
      { ...request, what: 'odd headers', headers: { ...headers, traceparent: 'x', 'if-none-match': '*, "x"', accept: 'image/png', 'x-forwarded-for': "'" }, expected: {} },
    ] // prettier-ignore
    if (operation.takesKey)
      for (const key of ['', 'x'.repeat(256), 'é', '\t'])
        frames.push({ ...request, what: `the key ${key.slice(0, 9)}`, headers: { ...headers, 'idempotency-key': key }, expected: { status: 400, param: 'Idempotency-Key' } }) // prettier-ignore
    if (body)
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonx', ''])
        frames.push({ ...request, what: `the type ${type}`, headers: { ...headers, 'content-type': type }, expected: { status: 415 } }) // prettier-ignore
    return fc.constantFrom(...frames)
  })
}
