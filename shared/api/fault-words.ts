import type { z } from 'zod'

/** What is wrong with a field, as words that follow its name. */
const faultWords = (issue: z.core.$ZodRawIssue) => {
  const words = wordsOf(issue)
  // Those who ask know what JSON is, and not what JavaScript calls absent.
  if (issue.input !== undefined) return words
  return issue.code === 'invalid_type' || words === undefined ? 'is required' : `is required, and ${words}`
}

function wordsOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${kinds[issue.expected] ?? issue.expected}${notAs(issue.input, issue.expected)}`
    case 'invalid_value':
      return `${oneOf(issue.values)}${notOneOf(issue.input, issue.values)}`
    case 'invalid_union':
      return Array.isArray(issue['options']) ? kindWords(issue, issue['options']) : eitherOf(issue.errors)
    case 'too_small':
      return bound(issue, issue.inclusive === false ? 'more than' : 'at least', issue.minimum)
    case 'too_big':
      return bound(issue, issue.inclusive === false ? 'less than' : 'at most', issue.maximum)
    case 'invalid_format':
      return formatWords(issue)
    case 'custom':
    case 'not_multiple_of':
    case 'unrecognized_keys':
    case 'invalid_key':
    case 'invalid_element':
      return undefined
  }
}

const kinds: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
}

/** NaN is what a setting becomes that was to be read as a number. */
const notAs = (input: unknown, expected: string) =>
  Number.isNaN(input) || (typeof input === 'number' && expected === 'int') ? '' : `, not ${kindOf(input)}`

function kindOf(input: unknown): string {
  if (input === null) return 'null'
  if (Array.isArray(input)) return 'an array'
  return (typeof input === 'boolean' ? String(input) : kinds[typeof input]) ?? typeof input
}

const oneOf = (values: readonly unknown[]) =>
  values.length === 1 ? `must be ${JSON.stringify(values[0])}` : `must be one of ${values.join(', ')}`

/** Of a union whose parts are told apart by one field, which is what is wrong: the issue has the whole object. */
function kindWords({ input, discriminator }: z.core.$ZodRawIssue, options: unknown[]) {
  const kind = (input as Record<string, unknown>)[String(discriminator)]
  return `${kind === undefined ? 'is required, and ' : ''}${oneOf(options)}${notOneOf(kind, options)}`
}

/** Of a union whose kinds differ, such as a word or an object. */
function eitherOf(errors: readonly z.core.$ZodIssue[][]): string | undefined {
  const named = errors.flatMap(([first]) => (first?.code === 'invalid_type' ? [kinds[first.expected]] : []))
  const kept = [...new Set(named.filter((kind) => kind !== undefined))]
  return kept.length === 0 ? undefined : `must be ${kept.join(' or ')}`
}

/** Said of another kind of value alone: a query that repeats a parameter has a list for it, of words that are all right. */
const notOneOf = (input: unknown, values: readonly unknown[]) =>
  input === undefined || values.some((value) => typeof value === typeof input) ? '' : `, not ${kindOf(input)}`

const units: Record<string, string> = { string: 'character', array: 'item' }

function bound({ origin }: { origin: string }, word: string, limit: number | bigint): string {
  const unit = units[origin]
  return unit === undefined ? `must be ${word} ${limit}` : `must have ${word} ${limit} ${unit}${limit === 1 ? '' : 's'}`
}

function formatWords({ format, pattern, input }: { format: string; pattern?: string | undefined; input?: unknown }) {
  switch (format) {
    case 'datetime':
      return `must be an ISO 8601 date-time with an offset, such as 2026-03-01T12:00:00Z${plusLost(input)}`
    case 'email':
      return 'must be an e-mail address'
    case 'regex':
      return `must match ${pattern ?? 'its pattern'}`
    default:
      return undefined
  }
}

/** A `+` in a query is read as a blank unless it is escaped, which is easily forgotten. */
const plusLost = (input: unknown) =>
  typeof input === 'string' && / \d\d:?\d\d$/.test(input) ? ': write its + as %2B in a URL' : ''

/** For `safeParse`: what callers are told. A schema that has words of its own keeps them. */
export const inOurWords = { error: faultWords }

/** For the query of a URL, where a list is what a parameter becomes that stands there more than once. */
export const inQueryWords = {
  error: (issue: z.core.$ZodRawIssue) => (Array.isArray(issue.input) ? 'must be given once' : faultWords(issue)),
}
