import { type Dispatcher, request } from 'undici'
import { z } from 'zod'
import { mendText } from '../api/json.ts'
import { Problem } from '../api/problem.ts'
import { callerHeaders, type Upstream } from './upstream.ts'

/** One call of the platform's management API. */
export interface UpstreamCall {
  method: 'GET' | 'POST'
  /** Below the version, such as `/106540352242922?fields=id`. */
  path: string
  /** Null for the one call that brings its own proof. */
  token: string | null
  /** Sent as JSON. */
  json?: unknown
  /** Bytes of a file, in the place of `json`. */
  file?: { headers: Record<string, string>; body: Dispatcher.DispatchOptions['body'] }
  /** Ends the call early. */
  signal?: AbortSignal | undefined
}

/** What the platform answered, as it came. */
export interface UpstreamAnswer {
  statusCode: number
  /** Undefined when it was not JSON. */
  value: unknown
}

/** Calls the platform, outside any transaction, for so long. Throws `upstream_unavailable` when there is no answer. */
export async function exchangeWithUpstream(
  upstream: Upstream,
  { method, path, token, json, file, signal }: UpstreamCall,
  timeoutMs: number,
): Promise<UpstreamAnswer> {
  const timeout = AbortSignal.timeout(Math.max(1, Math.floor(timeoutMs)))
  try {
    const { statusCode, body } = await request(upstream.urlOf(path, token), {
      method,
      dispatcher: upstream.agent,
      headers: {
        ...callerHeaders(token),
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...file?.headers,
      },
      body: json === undefined ? (file?.body ?? null) : JSON.stringify(json),
      signal: signal ? AbortSignal.any([timeout, signal]) : timeout,
    })
    return { statusCode, value: jsonOf(await body.text()) }
  } catch (cause) {
    throw new Problem('upstream_unavailable', { cause })
  }
}

/** The value of a JSON text, its texts mended so that Postgres can hold them; undefined for any other. */
export function jsonOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return text.includes('\\u') ? mendText(value) : value
  } catch {
    return undefined
  }
}

/** What is kept of a sentence, in attempts, messages and events. */
const sentenceLength = 1_000
const sentence = z.string().transform((text) => text.slice(0, sentenceLength).toWellFormed())

/** The platform's error body. Its texts are for people: what it means is in code and subcode. */
const Refused = z.object({
  error: z.object({
    code: z.int32(),
    error_subcode: z.number().optional().catch(undefined),
    message: sentence.catch(''),
    is_transient: z.boolean().optional().catch(undefined),
    error_user_msg: sentence.optional().catch(undefined),
    error_data: z.object({ details: sentence }).partial().optional().catch(undefined),
  }),
})

export interface Refusal {
  code: number
  subcode: number | undefined
  message: string
  /** What it says of the fault, the nearest to it first. */
  details: string
  /** The sentence that it has for the user. */
  forUser: string | undefined
  /** Something beside its code says that it may pass. */
  mayPass: boolean
}

/** Our proof is wrong while the app's secret is set anew, there or here: that has no code of its own. */
const isForProof = (code: number, message: string) => code === 100 && message.includes('appsecret_proof')

/** The refusal in an answer, when it is in the platform's own shape. */
export function refusalIn(value: unknown): Refusal | undefined {
  const error = Refused.safeParse(value).data?.error
  if (!error) return undefined
  const { code, error_subcode: subcode, message, error_user_msg: forUser, error_data: data } = error
  const mayPass = error.is_transient === true || isForProof(code, message)
  return { code, subcode, message, details: data?.details || message, forUser, mayPass }
}

/** What the call's path names is gone, or the token does not reach it: the Graph API's own words for a number that was deleted. */
export const isUnknownObject = ({ code, subcode }: Pick<Refusal, 'code' | 'subcode'>): boolean =>
  code === 33 || (code === 100 && subcode === 33)

/** Down, busy or throttled: the same call may succeed later, whatever HTTP status these come with. */
const passing = new Set([1, 2, 4, 17, 613, 80007, 80008, 130429, 131000, 131016, 131057, 133004, 2494100])
/** The number is not registered, or not deregistered whole: both come with a 500 and are final, and each try counts. */
const final = new Set([131045, 133000])

/** It may be otherwise in a moment. What the code does not tell, the status does, or the platform's own word. */
export function isPassing(httpStatus: number, refusal: Pick<Refusal, 'code' | 'subcode' | 'mayPass'>): boolean {
  if (passing.has(refusal.code)) return true
  const isFinal = final.has(refusal.code) || isAboutToken(refusal.code) || isUnknownObject(refusal)
  return !isFinal && (httpStatus >= 500 || refusal.mayPass)
}

/** The token, or what it is allowed; 200 to 299 are missing permissions, too. Code 3 comes with a 500 and is as final. */
const aboutToken = new Set([0, 3, 10, 102, 190, 131005])
export const isAboutToken = (code: number): boolean => aboutToken.has(code) || (code >= 200 && code <= 299)
