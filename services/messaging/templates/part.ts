import { invalidField } from '@app/shared/api/problem.ts'

/** An object inside a request with its place, so that what is wrong in it can be named. */
export interface Part {
  /** Such as `components[0].buttons[1]`. */
  path: string
  fields: Readonly<Record<string, unknown>>
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A refusal of one field of the part. */
export const invalidIn = ({ path }: Part, key: string, what: string) =>
  invalidField(`${path}.${key}`, `${path}.${key} ${what}.`)

/** A word that is taken in either case; in upper case. */
export const wordOf = ({ fields }: Part, key: string): string => {
  const word = fields[key]
  return typeof word === 'string' ? word.toUpperCase() : ''
}

/** A text of so many code points. */
export function textOf(part: Part, key: string, longest: number): string {
  const value = part.fields[key]
  if (typeof value !== 'string' || value.trim() === '')
    throw invalidIn(part, key, `must be a text of 1 to ${longest} characters`)
  let length = 0
  for (const _ of value) length++
  if (length > longest) throw invalidIn(part, key, `must have at most ${longest} characters`)
  return value
}

/** The objects of a list. */
export function partsOf(part: Part, key: string): Part[] {
  const value = part.fields[key]
  if (!Array.isArray(value)) throw invalidIn(part, key, 'must be a list')
  return value.map((item: unknown, n) => {
    if (!isObject(item)) throw invalidIn(part, `${key}[${n}]`, 'must be an object')
    return { path: `${part.path}.${key}[${n}]`, fields: item }
  })
}

/** An object in a field; an empty one when the field is absent. */
export function partOf(part: Part, key: string): Part {
  const value = part.fields[key] ?? {}
  if (!isObject(value)) throw invalidIn(part, key, 'must be an object')
  return { path: `${part.path}.${key}`, fields: value }
}
