import fc from 'fast-check'
import { fill, type Operation, type Schema } from './document.ts'
import { toJsonText } from './raw-json.ts'
import type { Request } from './request.ts'
import { type Known, valueOf } from './valid-values.ts'
import { pathsOf, type World } from './world.ts'

const json = { 'content-type': 'application/json' }

/** Requests that our own OpenAPI takes, to things that are there. */
export function validOf(world: World, operation: Operation, known: Known): fc.Arbitrary<Valid> {
  const { body: schema, example, queryParameters, path, takesKey } = operation
  const query = fc.record(
    Object.fromEntries(
      queryParameters
        .filter(({ name }) => name !== 'cursor')
        .map((one) => [one.name, valueOf(one.schema, known, one.name).map(String)]),
    ),
    { requiredKeys: [], noNullPrototype: true },
  )
  const value = schema
    ? fc.oneof(valueOf(schema, known), { weight: 1, arbitrary: exampleOf(example, schema, known) })
    : fc.constant(undefined)
  const characters = fc.stringMatching(/^[ -~]{1,60}$/).filter((text) => text.trim() !== '')
  // None comes twice: another request under a used key is told of that, and not of its own fault.
  const newKey = fc.tuple(characters, fc.uuid()).map((parts) => parts.join(' '))
  const key = takesKey ? fc.option(newKey, { freq: 3 }) : fc.constant(null)
  return fc.record({ names: fc.constantFrom(...pathsOf(world, operation)), query, value, key }).map(({ names, query, value, key }) => ({
    operation,
    what: 'valid',
    path: fill(path, names) + queryOf(query),
    headers: { ...(schema && json), ...(key !== null && { 'idempotency-key': `${key} ${world.phone}` }) },
    body: schema ? Buffer.from(toJsonText(value)) : null,
    expected: { isValid: true },
    names,
    query,
    value,
  })) // prettier-ignore
}

/** With the parts that it was made of, to be spoilt one at a time. */
export interface Valid extends Request {
  names: Record<string, string>
  query: Query
  value: unknown
}

/** The example of the documentation, with what is there in the place of its ids. */
export function exampleOf(example: unknown, schema: Schema, known: Known): fc.Arbitrary<unknown> {
  if (typeof example !== 'object' || example === null) return valueOf(schema, known)
  const real = Object.keys(example).filter((key) => known[key])
  return fc
    .record(Object.fromEntries(real.map((key) => [key, known[key] as fc.Arbitrary<unknown>])))
    .map((values) => ({ ...example, ...values }))
}

type Query = Record<string, string | undefined>

export const queryOf = (query: Query): string => {
  const text = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value ?? '')}`).join('&') // prettier-ignore
  return text && `?${text}`
}
