/** A JSON schema, as zod writes it. */
export interface Schema {
  [keyword: string]: unknown
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  enum?: unknown[]
  const?: unknown
}

/** What is taken in must go on to take what it took; what is given out must go on to give what it gave. */
export type Direction = 'taken' | 'given'

/** What of a contract is not as it was, in sentences; what was only added is none of it. */
export function breaksBetween(before: Schema, after: Schema, direction: Direction, path = ''): string[] {
  const [was, is] = [variantsOf(before), variantsOf(after)]
  if (was.length > 1 || is.length > 1) return variantBreaks(was, is, direction, path)
  return [
    ...typeBreaks(before, after, direction, path),
    ...valueBreaks(before, after, path),
    ...(direction === 'taken' ? boundBreaks(before, after, path) : []),
    ...propertyBreaks(before, after, direction, path),
    ...innerBreaks(before, after, direction, path),
  ]
}

const variantsOf = (schema: Schema) => schema.anyOf ?? schema.oneOf ?? [schema]

/** Taken: each form that was there fits one that is there. Given: each form that is there fits one that was. */
function variantBreaks(was: Schema[], is: Schema[], direction: Direction, path: string) {
  const pairs = direction === 'taken' ? { each: was, among: is } : { each: is, among: was }
  const lost = direction === 'given' ? was.filter((one) => !is.some((other) => fits(one, other, direction))) : []
  const unfit = pairs.each.filter(
    (one) =>
      !pairs.among.some((other) => (direction === 'taken' ? fits(one, other, direction) : fits(other, one, direction))),
  )
  return [...new Set([...lost, ...unfit])].map(
    (one) => `${path || '/'}: no longer fits ${JSON.stringify(one).slice(0, 120)}`,
  )
}

const fits = (before: Schema, after: Schema, direction: Direction) =>
  breaksBetween(before, after, direction).length === 0

const typesOf = ({ type }: Schema) => (type === undefined ? [] : [type].flat())

function typeBreaks(before: Schema, after: Schema, direction: Direction, path: string) {
  const [was, is] = [typesOf(before), typesOf(after)]
  // No type is any type.
  const [narrow, wide] = direction === 'taken' ? [was, is] : [is, was]
  const fitsIn =
    wide.length === 0 ||
    (narrow.length > 0 &&
      narrow.every((type) => wide.includes(type) || (type === 'integer' && wide.includes('number'))))
  return fitsIn ? [] : [`${path || '/'}: was ${was.join('|') || 'anything'}, is ${is.join('|') || 'anything'}`]
}

const valuesOf = (schema: Schema) => ('const' in schema ? [schema.const] : schema.enum)

/** A value that was known stays known, in both directions: who wrote it before the release reads it after. */
function valueBreaks(before: Schema, after: Schema, path: string) {
  const [was, is] = [valuesOf(before), valuesOf(after)]
  if (is === undefined) return []
  if (was === undefined) return [`${path || '/'}: only ${JSON.stringify(is)} now`]
  return was.filter((value) => !is.includes(value)).map((value) => `${path || '/'}: ${JSON.stringify(value)} is gone`)
}

const lowerBounds = ['minLength', 'minItems', 'minimum', 'exclusiveMinimum', 'minProperties']
const upperBounds = ['maxLength', 'maxItems', 'maximum', 'exclusiveMaximum', 'maxProperties']

/** A word for what programs keep a number in; a number that JSON brings fits. */
const isWidth = (format: unknown) => format === 'int64' || format === 'double'

function boundBreaks(before: Schema, after: Schema, path: string) {
  const narrowed = [
    ...lowerBounds.filter((bound) => Number(after[bound] ?? -Infinity) > Number(before[bound] ?? -Infinity)),
    ...upperBounds.filter((bound) => Number(after[bound] ?? Infinity) < Number(before[bound] ?? Infinity)),
    ...['pattern', 'format'].filter(
      (rule) => after[rule] !== undefined && after[rule] !== before[rule] && !isWidth(after[rule]),
    ),
  ]
  return narrowed.map((bound) => `${path || '/'}: ${bound} was ${String(before[bound])}, is ${String(after[bound])}`)
}

function propertyBreaks(before: Schema, after: Schema, direction: Direction, path: string) {
  const [was, is] = [before.properties ?? {}, after.properties ?? {}]
  const open = typeof after.additionalProperties === 'object' ? after.additionalProperties : undefined
  const gone = Object.keys(was).filter((name) => !(name in is) && !open)
  const [fewer, more] =
    direction === 'taken'
      ? [before.required ?? [], after.required ?? []]
      : [after.required ?? [], before.required ?? []]
  const newly = more.filter((name) => !fewer.includes(name) && !gone.includes(name))
  return [
    ...gone.map((name) => `${path}/${name}: is gone`),
    ...newly.map((name) => `${path}/${name}: ${direction === 'taken' ? 'is required now' : 'may be missing now'}`),
  ]
}

function innerBreaks(before: Schema, after: Schema, direction: Direction, path: string) {
  const named = Object.entries(before.properties ?? {}).map(
    ([name, schema]) => [name, schema, after.properties?.[name]] as const,
  )
  const [was, is] = [before.additionalProperties, after.additionalProperties]
  const inner = [
    ...named,
    ['[]', before.items, after.items] as const,
    ['*', typeof was === 'object' ? was : undefined, typeof is === 'object' ? is : undefined] as const,
  ]
  return inner.flatMap(([name, one, other]) =>
    one && other ? breaksBetween(one, other, direction, `${path}/${name}`) : [],
  )
}
