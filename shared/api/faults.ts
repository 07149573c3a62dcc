import type { z } from 'zod'
import { type FailureName, failures, Problem } from './problem.ts'

/** Where a fault was found: the path of a URL, its query, or the body. */
type Place = 'params' | 'query' | 'body'

/**
 * The first fault that a schema found, as the caller sees it, with the field in `param`. A malformed path parameter is
 * the same 404 as an absent resource, without param.
 */
export function faultOf(error: z.ZodError, place: Place): Problem {
  if (place === 'params') return new Problem('resource_not_found', { cause: error })
  const issue = nearest(tightest(error.issues))
  const param = paramOf(issue?.path ?? [])
  const failure = (place === 'query' && ofPages.get(param)) || failureOf(issue)
  // The table's words say what is allowed, and not that it stands there twice.
  const isRepeated = issue?.code === 'invalid_type'
  if (failure !== 'invalid_field_value' && !isRepeated) return new Problem(failure, { param, cause: error })
  const message = `${param || 'The request body'}: ${issue?.message ?? 'is invalid'}.`
  return new Problem(failure, { param: param || undefined, message, cause: error })
}

/** The first fault; of the bounds that one number is beyond, the nearest, since every whole number has those of JavaScript before its own. */
function tightest([first, ...others]: z.core.$ZodIssue[]): z.core.$ZodIssue | undefined {
  if (first?.code !== 'too_big' && first?.code !== 'too_small') return first
  return others.find(({ code, path }) => code === first.code && String(path) === String(first.path)) ?? first
}

/** Of a union the alternative that was meant: that whose kind fits, and which found its fault further inside. */
function nearest(issue: z.core.$ZodIssue | undefined): z.core.$ZodIssue | undefined {
  if (issue?.code !== 'invalid_union') return issue
  const isDeeper = issue.errors.find(([first]) => first && first.path.length > 0)
  const inner = (isDeeper ?? issue.errors.find(([first]) => first && first.code !== 'invalid_type'))?.[0]
  return inner ? nearest({ ...inner, path: [...issue.path, ...inner.path] }) : issue
}

/** What every list takes has a failure of its own, also when it is repeated and so comes as a list. */
const ofPages: ReadonlyMap<string, FailureName> = new Map([
  ['limit', 'invalid_limit'],
  ['cursor', 'invalid_cursor'],
])

/** Schemas name another failure than `invalid_field_value` in a refinement's `params: { failure }`. */
function failureOf(issue: z.core.$ZodIssue | undefined): FailureName {
  const named: unknown = issue?.code === 'custom' ? issue.params?.['failure'] : undefined
  return typeof named === 'string' && named in failures ? (named as FailureName) : 'invalid_field_value'
}

const paramOf = (path: PropertyKey[]) =>
  path.reduce<string>((param, key) => {
    if (typeof key === 'number') return `${param}[${key}]`
    return param === '' ? String(key) : `${param}.${String(key)}`
  }, '')
