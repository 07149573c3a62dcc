import type { Template } from './template.ts'

type Format = Template['parameterFormat']

const anyVariable = /\{\{\s*([^{}]*?)\s*\}\}/g
const patterns: Record<Format, RegExp> = { POSITIONAL: /^[1-9]\d*$/, NAMED: /^[a-z][a-z0-9_]*$/ }

/** The variables of a text in the order in which they stand, each once. */
export const variablesOf = (text: string) => [
  ...new Set(Array.from(text.matchAll(anyVariable), ([, name]) => name ?? '')),
]

/** What is wrong with the variables of a text; undefined when nothing is. */
export function wrongVariables(text: string, format: Format) {
  const names = variablesOf(text)
  const odd = names.find((name) => !patterns[format].test(name))
  if (odd !== undefined) return `The variable {{${odd}}} is not written as ${format.toLowerCase()} parameters are.`
  if (/\{\{|\}\}/.test(text.replaceAll(anyVariable, ''))) return 'A variable is not closed.'
  if (
    format === 'POSITIONAL' &&
    names.toSorted((a, b) => Number(a) - Number(b)).some((name, at) => Number(name) !== at + 1)
  )
    return 'Variables must be numbered from 1 on, without a gap.'
  return undefined
}

/** A text may neither begin nor end with a variable; two may not touch. */
export const variableIsAtTheEdge = (text: string) => /^\s*\{\{/.test(text) || /\}\}\s*$/.test(text)
export const variablesTouch = (text: string) => /\}\}\s*\{\{/.test(text)

/** The platform's ratio is not documented: here a text needs as many words of its own as it has variables. */
export function hasTooManyVariables(text: string) {
  const words = text.replaceAll(anyVariable, ' ').match(/[\p{L}\p{N}]+/gu) ?? []
  return words.length < variablesOf(text).length
}

export const fillIn = (text: string, valueOf: (name: string) => string | undefined) =>
  text.replaceAll(anyVariable, (whole, name: string) => valueOf(name) ?? whole)
