import { invalidField, Problem } from '@app/shared/problem.ts'
import { request } from 'undici'
import type { z } from 'zod'
import { type Place, problemOf } from './refusals.ts'
import type { Upstream } from '@app/shared/upstream.ts'

export interface Question<A extends z.ZodType> extends Place {
  method: 'GET' | 'POST'
  /** Below the version, such as `/106540352242922?fields=id`. */
  path: string
  /** Null for the one question that brings its own proof. */
  token: string | null
  /** Sent as JSON. */
  body?: object
  /** Ends the question early. */
  signal?: AbortSignal | undefined
  /** What a fit answer looks like. */
  answer: A
}

/**
 * Asks the platform's management API, outside any transaction; the deadline is a moment of performance.now.
 * @throws `upstream_refused` when it refuses for good, with the field of ours that it refuses; `upstream_unavailable` when
 * it does not answer, not in time, or not as it should.
 */
export async function askUpstream<A extends z.ZodType>(
  upstream: Upstream,
  question: Question<A>,
  deadline: number,
): Promise<z.output<A>> {
  // What is in no header could end ours and begin another.
  if (question.token !== null && !/^[\x21-\x7e]+$/.test(question.token)) {
    throw invalidField('access_token', 'access_token must be visible ASCII characters.')
  }
  const { statusCode, value } = await exchange(upstream, question, deadline)
  const answer = question.answer.safeParse(value)
  if (statusCode < 300 && answer.success) return answer.data
  throw problemOf(statusCode, value, question)
}

async function exchange(
  { url, agent }: Upstream,
  { method, path, token, body: content, signal }: Question<z.ZodType>,
  deadline: number,
) {
  const timeoutMs = Math.max(1, Math.floor(deadline - performance.now()))
  try {
    const { statusCode, body } = await request(`${url}${path}`, {
      method,
      dispatcher: agent,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(content && { 'content-type': 'application/json' }),
      },
      body: content ? JSON.stringify(content) : null,
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]),
    })
    return { statusCode, value: parse(await body.text()) }
  } catch (cause) {
    throw new Problem('upstream_unavailable', { cause })
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
