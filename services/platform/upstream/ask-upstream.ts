import { invalidField } from '@app/shared/api/problem.ts'
import { exchangeWithUpstream, type UpstreamCall } from '@app/shared/outside/upstream-exchange.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import type { z } from 'zod'
import { type Place, problemOf } from './refusals.ts'

export interface Question<A extends z.ZodType> extends UpstreamCall, Place {
  /** The shape of a proper answer. */
  answer: A
}

/**
 * Asks the platform's management API, outside any transaction; the deadline is a moment of performance.now.
 * @throws `upstream_refused` when it refuses for good, with the field of ours that it refuses; `upstream_unavailable` when
 * it does not answer, not in time, or not as it should.
 */
export async function askUpstream<A extends z.ZodType>(
  upstream: Upstream,
  { answer: fit, param, ...call }: Question<A>,
  deadline: number,
): Promise<z.output<A>> {
  // What is in no header could end ours and begin another.
  if (call.token !== null && !/^[\x21-\x7e]+$/.test(call.token)) {
    throw invalidField('access_token', 'access_token must be visible ASCII characters.')
  }
  const { statusCode, value } = await exchangeWithUpstream(upstream, call, deadline - performance.now())
  const answer = fit.safeParse(value)
  if (statusCode < 300 && answer.success) return answer.data
  throw problemOf(statusCode, value, { param })
}
