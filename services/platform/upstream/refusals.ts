import { Problem } from '@app/shared/problem.ts'
import { z } from 'zod'

/** The field of our request that names the object in the question's path. */
export interface Place {
  param: 'phone_number_id' | 'business_account_id' | 'code'
}

/** The cause of a problem that the platform's own error body made. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly code: number
  readonly subcode: number | undefined

  constructor(httpStatus: number, { code, error_subcode: subcode }: Refusal) {
    super(`the platform answered ${httpStatus} with code ${code}, subcode ${subcode ?? 'none'}`)
    this.code = code
    this.subcode = subcode
  }
}

/** What the platform itself said, when it is why something failed. */
export const upstreamErrorOf = (err: unknown): UpstreamError | undefined =>
  err instanceof Problem && err.cause instanceof UpstreamError ? err.cause : undefined

/** The platform's error body. Its texts are for people: what it means is in the code. */
const Refused = z.object({
  error: z.object({
    code: z.int(),
    error_subcode: z.int().optional().catch(undefined),
    message: z.string().catch(''),
    error_user_msg: z.string().optional().catch(undefined),
    error_data: z.object({ details: z.string() }).optional().catch(undefined),
  }),
})

type Refusal = z.output<typeof Refused>['error']

/** Down, busy or throttled: the same call may succeed later, whatever HTTP status these come with. */
const passing = new Set([1, 2, 4, 17, 80007, 130429, 131000, 131016, 131057, 133004, 2494100])
/** The token, or what it is allowed; 200 to 299 are missing permissions, too. Code 3 comes with a 500 and is as final. */
const aboutToken = new Set([0, 3, 10, 102, 190, 131005])

/** What an answer that is no success means for our caller. */
export function problemOf(httpStatus: number, value: unknown, { param }: Place): Problem {
  const refusal = Refused.safeParse(value).data?.error
  if (!refusal) return withoutShape(httpStatus)
  const { code, error_subcode: subcode } = refusal
  const cause = new UpstreamError(httpStatus, refusal)
  if (passing.has(code)) return new Problem('upstream_unavailable', { cause })
  const refused = (field?: string) =>
    new Problem('upstream_refused', { param: field, message: sentenceOf(refusal), cause })
  if (httpStatus === 401 || aboutToken.has(code) || (code >= 200 && code <= 299)) return refused('access_token')
  if (code === 33 || (code === 100 && subcode === 33)) return refused(param)
  return httpStatus >= 500 ? new Problem('upstream_unavailable', { cause }) : refused()
}

function withoutShape(httpStatus: number) {
  const cause = new Error(`the platform answered ${httpStatus} with what is not its own`)
  return httpStatus === 401
    ? new Problem('upstream_refused', { param: 'access_token', cause })
    : new Problem('upstream_unavailable', { cause })
}

const sentenceOf = ({ error_data: data, error_user_msg: forUser, message, code }: Refusal) =>
  `The upstream platform refused the request: ${data?.details || forUser || message || `code ${code}`}`
