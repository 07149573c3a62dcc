import { badParameter } from '../graph/graph-error.ts'
import { type Param, requiredText } from '../graph/params.ts'

/** One of the words, in either case: the management API takes both. */
export function requiredWordOf<W extends string>(param: Param, key: string, words: readonly W[]): W {
  const text = requiredText(param, key)
  const word = words.find((candidate) => candidate === text.toUpperCase())
  if (word !== undefined) return word
  const path = param.path === '' ? key : `${param.path}['${key}']`
  throw badParameter(`Param ${path} must be one of {${words.join(', ')}} - got "${text}".`)
}
