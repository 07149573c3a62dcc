import { badParameter } from './graph-error.ts'

export type Fields = Record<string, unknown>

/** A JSON object of a request and where it stands, in the platform's way of writing: `template['components'][0]`. */
export interface Param {
  path: string
  fields: Fields
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const pathOf = ({ path }: Param, key: string) => (path === '' ? key : `${path}['${key}']`)

/** Absent, null and empty are one to the platform. */
function present(param: Param, key: string) {
  const value = Object.hasOwn(param.fields, key) ? param.fields[key] : undefined
  return value === '' || value === null ? undefined : value
}

function required(param: Param, key: string) {
  const value = present(param, key)
  if (value === undefined) throw badParameter(`The parameter ${pathOf(param, key)} is required.`)
  return value
}

function located(path: string, value: unknown): Param {
  if (!isFields(value)) throw badParameter(`Param ${path} must be a JSON object.`)
  return { path, fields: value }
}

export const requiredObject = (param: Param, key: string) => located(pathOf(param, key), required(param, key))

export const optionalObject = (param: Param, key: string) =>
  present(param, key) === undefined ? undefined : requiredObject(param, key)

/** The objects of a list, each with its place. */
export function requiredList(param: Param, key: string): Param[] {
  const path = pathOf(param, key)
  const value = required(param, key)
  if (!Array.isArray(value)) throw badParameter(`Param ${path} must be an array.`)
  return value.map((item, index) => located(`${path}[${index}]`, item))
}

export const optionalList = (param: Param, key: string) =>
  present(param, key) === undefined ? [] : requiredList(param, key)

/** Characters are code points. */
export function lengthOf(text: string) {
  let length = 0
  for (const _ of text) length++
  return length
}

export function requiredText(param: Param, key: string, maxLength = Infinity) {
  const path = pathOf(param, key)
  const value = required(param, key)
  if (typeof value !== 'string') throw badParameter(`Param ${path} must be a string.`)
  if (value.length > maxLength && lengthOf(value) > maxLength)
    throw badParameter(`Param ${path} must be at most ${maxLength} characters long.`)
  return value
}

export const optionalText = (param: Param, key: string, maxLength = Infinity) =>
  present(param, key) === undefined ? undefined : requiredText(param, key, maxLength)

export function optionalBoolean(param: Param, key: string) {
  const value = present(param, key)
  if (value === undefined || typeof value === 'boolean') return value
  throw badParameter(`Param ${pathOf(param, key)} must be a boolean.`)
}

/** One of the words given, exactly as written; the refusal lists them in capitals, as the platform does. */
export function requiredWord<W extends string>(param: Param, key: string, words: readonly W[]): W {
  const text = requiredText(param, key)
  const word = words.find((candidate) => candidate === text)
  if (word !== undefined) return word
  const list = words.map((candidate) => candidate.toUpperCase()).join(', ')
  throw badParameter(`Param ${pathOf(param, key)} must be one of {${list}} - got "${text}".`)
}

/** The platform refuses keys that it does not know, but for those of the message itself. */
export function onlyKeys(param: Param, ...keys: string[]) {
  for (const key in param.fields)
    if (!keys.includes(key)) throw badParameter(`Unexpected key "${key}" on param "${param.path}".`)
}
