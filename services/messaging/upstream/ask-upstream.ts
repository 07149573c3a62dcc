import { Problem } from '@app/shared/problem.ts'
import type { Upstream } from '@app/shared/upstream.ts'
import { type Dispatcher, request } from 'undici'
import { z } from 'zod'

/** What the platform's management API takes, at most. */
const managementTimeoutMs = 15_000

export interface Question<A extends z.ZodType> {
  method: 'GET' | 'POST'
  /** Below the version, such as `/102290129340398/message_templates?limit=50`. */
  path: string
  token: string
  /** Sent as JSON. */
  json?: unknown
  /** Bytes of a file, in the place of `json`. */
  file?: { headers: Record<string, string>; body: Dispatcher.DispatchOptions['body'] }
  /** What a fit answer looks like. */
  answer: A
}

/** Down, busy or throttled: the same call may succeed later, whatever HTTP status these come with. */
const passing = new Set([1, 2, 4, 17, 80007, 80008, 130429, 131000, 131016, 131057, 133004, 2494100])
/** The token, or what it is allowed; 200 to 299 are missing permissions, too. Code 3 comes with a 500 and is as final. */
const aboutToken = new Set([0, 3, 10, 102, 190, 131005])

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

  constructor(httpStatus: number, code: number, subcode: number | undefined, sentence: string) {
    super(`the platform answered ${httpStatus} with code ${code}, subcode ${subcode ?? 'none'}`)
    this.httpStatus = httpStatus
    this.code = code
    this.subcode = subcode
    this.sentence = sentence
  }

  get isAboutToken(): boolean {
    return this.httpStatus === 401 || aboutToken.has(this.code) || (this.code >= 200 && this.code <= 299)
  }

  /** It may be otherwise in a moment. */
  get isPassing(): boolean {
    return passing.has(this.code) || (this.httpStatus >= 500 && !this.isAboutToken)
  }
}

/**
 * Asks the platform's management API, outside any transaction, until the deadline (performance.now) at most.
 * @throws `UpstreamRefusal` when it answers with an error of its own; `upstream_unavailable` when it does not answer, not in
 * time, or not as it should: then what was asked for may have been done.
 */
export async function askUpstream<A extends z.ZodType>(
  upstream: Upstream,
  question: Question<A>,
  deadline: number,
): Promise<z.output<A>> {
  const { statusCode, value } = await exchange(upstream, question, deadline)
  const answer = question.answer.safeParse(value)
  if (statusCode < 300 && answer.success) return answer.data
  throw failureOf(statusCode, value)
}

async function exchange({ url, agent }: Upstream, question: Question<z.ZodType>, deadline: number) {
  const { method, path, token, json, file } = question
  const timeoutMs = Math.max(1, Math.floor(Math.min(deadline - performance.now(), managementTimeoutMs)))
  try {
    const { statusCode, body } = await request(`${url}${path}`, {
      method,
      dispatcher: agent,
      headers: {
        authorization: `Bearer ${token}`,
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...file?.headers,
      },
      body: json === undefined ? (file?.body ?? null) : JSON.stringify(json),
      signal: AbortSignal.timeout(timeoutMs),
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

const Refused = z.object({
  error: z.object({
    code: z.int(),
    error_subcode: z.int().optional().catch(undefined),
    message: z.string().catch(''),
    error_user_msg: z.string().optional().catch(undefined),
    error_data: z.object({ details: z.string() }).optional().catch(undefined),
  }),
})

function failureOf(httpStatus: number, value: unknown): Error {
  const error = Refused.safeParse(value).data?.error
  if (!error) {
    const cause = new Error(`the platform answered ${httpStatus} with what is not its own`)
    return new Problem('upstream_unavailable', { cause })
  }
  const { code, error_subcode: subcode, error_user_msg: forUser, error_data: data, message } = error
  return new UpstreamRefusal(httpStatus, code, subcode, forUser || data?.details || message || `code ${code}`)
}
