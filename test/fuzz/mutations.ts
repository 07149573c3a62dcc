import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { Schema } from './document.ts'
import { RawJson } from './raw-json.ts'

const ajv = new Ajv2020({ strict: false })
formats.default(ajv)

/** Whether our own OpenAPI takes the value. */
const takes = (schema: Schema, value: unknown): boolean => ajv.validate(schema, value)

type Path = (string | number)[]

/** A field of a body, or one that could stand there. */
interface Place {
  path: Path
  schema: Schema
  /** The part of a choice that the value is of, for its lengths. */
  limits?: Schema
  value: unknown
  isRequired: boolean
}

/** One thing wrong with a body that was right. */
export interface Mutation {
  what: string
  body: unknown
  /** The field that the answer must name; for an empty object that may be one inside. */
  param: string
}

/** Every way to spoil one field of a valid body so that our own OpenAPI refuses it. */
export function mutationsOf(schema: Schema, body: unknown): Mutation[] {
  return placesOf({ path: [], schema, value: body, isRequired: true })
    .filter(({ path }) => path.length > 0)
    .flatMap((place) =>
      faultsAt(place).map(([what, value]) => ({
        what: `${what} at ${nameOf(place.path)}`,
        body: changed(body, place.path, value),
        param: nameOf(place.path),
      })),
    )
}

/** As `param` names it. */
const nameOf = (path: Path): string =>
  path.reduce<string>((name, key) => {
    if (typeof key === 'number') return `${name}[${key}]`
    return name === '' ? key : `${name}.${key}`
  }, '')

function placesOf(place: Place): Place[] {
  const { path, value } = place
  const schema = branchOf(place.schema, value)
  const here = { ...place, limits: schema }
  if (Array.isArray(value))
    return [
      here,
      ...value.flatMap((item, n) =>
        placesOf({ path: [...path, n], schema: schema.items ?? {}, value: item, isRequired: false }),
      ),
    ]
  if (typeof value !== 'object' || value === null) return [here]
  const below = Object.entries(schema.properties ?? {}).flatMap(([key, item]) => {
    const one = { path: [...path, key], schema: item, isRequired: schema.required?.includes(key) ?? false }
    // What is not there can be spoilt by being there.
    return key in value ? placesOf({ ...one, value: value[key as keyof typeof value] }) : [{ ...one, value: undefined }]
  })
  return [here, ...below]
}

/** The part of a choice that the value is of. */
function branchOf(schema: Schema, value: unknown): Schema {
  const parts = schema.oneOf ?? schema.anyOf
  const part = parts?.find((one) => takes(one, value))
  return part ? branchOf(part, value) : schema
}

/** Values that the schema of a place does not take, each with its name; `absent` for none at all. */
function faultsAt({ schema, limits = schema, value, isRequired }: Place): [string, unknown][] {
  const faults: [string, unknown][] = isRequired ? [['nothing', absent]] : []
  const others: [string, unknown][] = [
    ['null', null],
    ['true', true],
    ['0', 0],
    ['-1', -1],
    ['1.5', 1.5],
    ['an empty text', ''],
    ['another word', 'nonsense!'],
    ['an empty list', []],
    ['an empty object', {}],
    ['too long a text', '𝒳'.repeat((limits.maxLength ?? 100) + 1)],
    ['too long a list', Array.from({ length: (limits.maxItems ?? 100) + 1 }, () => 'x')],
    ['an id of another kind', 'evt_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'],
    ...justBeyond(limits, value),
  ]
  const isText = typeof value === 'string' && schema.const === undefined
  faults.push(...others.filter(([, other]) => !takes(schema, other)))
  if (!takes(schema, 1))
    faults.push(['1e400', new RawJson('1e400')], ['20 digits', new RawJson('12345678901234567890')])
  // What Postgres cannot hold is refused wherever it stands.
  if (isText) faults.push(['U+0000', `${value}\0`], ['a lone surrogate', `${value}\ud800`])
  return faults
}

/** One too many, or too few. */
function justBeyond({ minLength = 0, minimum, maximum, minItems = 0, maxItems, pattern }: Schema, value: unknown) {
  const faults: [string, unknown][] = []
  if (minLength > 1) faults.push(['too short a text', 'x'.repeat(minLength - 1)])
  if (minimum !== undefined) faults.push(['too small a number', minimum - 1])
  if (maximum !== undefined) faults.push(['too large a number', maximum + 1], ['far too large a number', 1e20])
  if (pattern !== undefined && typeof value === 'string')
    faults.push(['a character more', `${value}!`], ['small letters', value.toLowerCase()])
  if (!Array.isArray(value) || value.length === 0) return faults
  if (minItems > 0) faults.push(['an item too few', value.slice(0, minItems - 1)])
  if (maxItems !== undefined)
    faults.push([
      'an item too many',
      Array.from({ length: maxItems + 1 }, (_, n) => value[n % value.length] as unknown),
    ])
  return faults
}

const absent = Symbol('absent')

function changed(body: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value
  if (Array.isArray(body)) return body.map((item, n) => (n === key ? changed(item, rest, value) : item))
  const copy = { ...(body as Record<string, unknown>) }
  const after = changed(copy[key], rest, value)
  if (after === absent) delete copy[key]
  else copy[key] = after
  return copy
}
