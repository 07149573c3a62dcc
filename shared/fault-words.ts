import type { z } from 'zod'

type Issue = z.core.$ZodRawIssue

/**
 * What is wrong with a field, in words that follow its name: schemas give them to callers who know JSON, not the library
 * that checks it. Undefined leaves the library's own words.
 */
export function faultWords(issue: Issue): string | undefined {
  if (issue.input === undefined) return 'is required'
  if (issue.code === 'invalid_type') return kindOf(issue.expected, issue.input)
  if (issue.code === 'invalid_value')
    return `must be ${issue.values.length > 1 ? 'one of ' : ''}${listOf(issue.values)}`
  if (issue.code === 'too_small') return boundOf(issue.origin, issue.minimum, 'at least')
  if (issue.code === 'too_big') return boundOf(issue.origin, issue.maximum, 'at most')
  if (issue.code === 'invalid_format') return formatOf(issue)
  // What is said of a union's `type`; its input is the whole object.
  if (issue.code === 'invalid_union' && issue.options) return `must be one of ${listOf(issue.options)}`
  return undefined
}

/** A query parameter that is given twice comes as a list. */
const kindOf = (expected: string, input: unknown) =>
  kinds[expected] && `must be ${kinds[expected]}${Array.isArray(input) && expected === 'string' ? ', not a list' : ''}`

const kinds: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

const listOf = (values: readonly unknown[]) => values.map((value) => JSON.stringify(value)).join(', ')

const units: Record<string, string> = { string: ' characters', array: ' items' }

function boundOf(origin: string, bound: number | bigint, atLeastOrMost: string) {
  const unit = units[origin]
  return `must ${unit ? 'have' : 'be'} ${atLeastOrMost} ${bound}${(bound === 1 ? unit?.slice(0, -1) : unit) ?? ''}`
}

function formatOf({ format, pattern, input }: Extract<Issue, { code: 'invalid_format' }>) {
  if (format === 'email') return 'must be an e-mail address'
  if (format === 'regex') return `must match ${pattern}`
  if (format !== 'datetime') return undefined
  const isDecoded = typeof input === 'string' && / \d\d:?\d\d$/.test(input)
  const hint = isDecoded ? '; in a URL the + of an offset is written %2B' : ''
  return `must be an ISO 8601 date-time with its offset, such as 2026-03-01T12:00:00Z${hint}`
}
