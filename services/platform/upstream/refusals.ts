import { Problem } from '@app/shared/api/problem.ts'
import {
  isAboutToken,
  isPassing,
  isUnknownObject,
  type Refusal,
  refusalIn,
} from '@app/shared/outside/upstream-exchange.ts'

/** The field of our request that names the object in the question's path. */
export interface Place {
  param: 'phone_number_id' | 'business_account_id' | 'code'
}

/** The cause of a problem that the platform's own error body made. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly code: number
  readonly subcode: number | undefined

  constructor(httpStatus: number, { code, subcode }: Refusal) {
    super(`the platform answered ${httpStatus} with code ${code}, subcode ${subcode ?? 'none'}`)
    this.code = code
    this.subcode = subcode
  }
}

/** What the platform itself said, when it is why something failed. */
export const upstreamErrorOf = (err: unknown): UpstreamError | undefined =>
  err instanceof Problem && err.cause instanceof UpstreamError ? err.cause : undefined

/** What an answer that is no success means for our caller. */
export function problemOf(httpStatus: number, value: unknown, { param }: Place): Problem {
  const refusal = refusalIn(value)
  if (!refusal) return withoutShape(httpStatus)
  const cause = new UpstreamError(httpStatus, refusal)
  // A token that is given and does not fit our proof is of another app, which its owner has to be told.
  if (isPassing(httpStatus, { ...refusal, mayPass: false })) return new Problem('upstream_unavailable', { cause })
  const refused = (field?: string) =>
    new Problem('upstream_refused', { param: field, message: sentenceOf(refusal), cause })
  if (httpStatus === 401 || isAboutToken(refusal.code)) return refused('access_token')
  return refused(isUnknownObject(refusal) ? param : undefined)
}

function withoutShape(httpStatus: number) {
  const cause = new Error(`the platform answered ${httpStatus} with what is not its own`)
  return httpStatus === 401
    ? new Problem('upstream_refused', { param: 'access_token', cause })
    : new Problem('upstream_unavailable', { cause })
}

const sentenceOf = ({ details, forUser, message, code }: Refusal) =>
  `The upstream platform refused the request: ${(details === message ? forUser : undefined) || details || `code ${code}`}`
