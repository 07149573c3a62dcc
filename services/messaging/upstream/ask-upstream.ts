import { Problem } from '@app/shared/api/problem.ts'
import {
  exchangeWithUpstream,
  isAboutToken,
  isPassing,
  refusalIn,
  type UpstreamCall,
} from '@app/shared/outside/upstream-exchange.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import type { z } from 'zod'

/** What the platform's management API takes, at most. */
const managementTimeoutMs = 15_000

export interface Question<A extends z.ZodType> extends UpstreamCall {
  token: string
  /** What a fit answer looks like. */
  answer: A
}

/**
 * An error in the platform's own shape: its word that it did nothing. Its texts are for people: what it means is in code and
 * subcode.
 */
export class UpstreamRefusal extends Error {
  override readonly name = 'UpstreamRefusal'
  readonly httpStatus: number
  readonly code: number
  readonly subcode: number | undefined
  /** The sentence that it has for the user. */
  readonly sentence: string
  /** Something beside its code says that it may pass. */
  readonly mayPass: boolean

  constructor(httpStatus: number, code: number, subcode: number | undefined, sentence: string, mayPass = false) {
    super(`the platform answered ${httpStatus} with code ${code}, subcode ${subcode ?? 'none'}`)
    this.httpStatus = httpStatus
    this.code = code
    this.subcode = subcode
    this.sentence = sentence
    this.mayPass = mayPass
  }

  get isAboutToken(): boolean {
    return this.httpStatus === 401 || isAboutToken(this.code)
  }

  /** It may be otherwise in a moment. */
  get isPassing(): boolean {
    return isPassing(this.httpStatus, this)
  }
}

/**
 * Asks the platform's management API, outside any transaction, until the deadline (performance.now) at most.
 * @throws `UpstreamRefusal` when it answers with an error of its own; `upstream_unavailable` when it does not answer, not in
 * time, or not as it should: then what was asked for may have been done.
 */
export async function askUpstream<A extends z.ZodType>(
  upstream: Upstream,
  { answer: fit, ...question }: Question<A>,
  deadline: number,
): Promise<z.output<A>> {
  const timeoutMs = Math.min(deadline - performance.now(), managementTimeoutMs)
  const { statusCode, value } = await exchangeWithUpstream(upstream, question, timeoutMs)
  const answer = fit.safeParse(value)
  if (statusCode < 300 && answer.success) return answer.data
  throw failureOf(statusCode, value)
}

function failureOf(httpStatus: number, value: unknown): Error {
  const refusal = refusalIn(value)
  if (!refusal) {
    const cause = new Error(`the platform answered ${httpStatus} with what is not its own`)
    return new Problem('upstream_unavailable', { cause })
  }
  const { code, subcode, forUser, details, mayPass } = refusal
  return new UpstreamRefusal(httpStatus, code, subcode, forUser || details || `code ${code}`, mayPass)
}
