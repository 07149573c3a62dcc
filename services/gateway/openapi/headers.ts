const text = (description: string, example: string, pattern?: string) => ({
  description,
  schema: { type: 'string', ...(pattern && { pattern }) },
  example,
})
const count = (description: string, example: number) => ({
  description,
  schema: { type: 'integer', minimum: 0 },
  example,
})

/** The headers of answers, as components. */
export const headers = {
  RequestId: text(
    'The id of this request, to be quoted in support requests.',
    'req_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
    '^req_',
  ),
  RateLimitPolicy: text('The budget of a minute (IETF draft 10).', '"read";q=6000;w=60'),
  RateLimit: text('What is left of it, and the seconds until it is whole again (IETF draft 10).', '"read";r=5999;t=1'),
  RateLimitLimit: count('The budget of a minute.', 6000),
  RateLimitRemaining: count('What is left of it.', 5999),
  RateLimitReset: count('When it is whole again, in epoch seconds.', 1772366401),
  RetryAfter: count('How many seconds to wait before the next try.', 1),
  WwwAuthenticate: text('The scheme in which the key is sent.', 'Bearer', '^Bearer$'),
  ETag: text('Changes when the answer does. Send it as `If-None-Match`.', 'W/"2jmj7l5rSw0yVb_vlWAYkK_YBwk"', '^W/'),
  Location: text('Where it is found.', 'https://chat.example.com/media/5f1a9c1e8f3f4c64a8a50f2f0c2f2b8d'),
  IdempotentReplayed: text('`true` on the stored answer of an earlier request with the same key.', 'true', '^true$'),
}

const ref = (name: keyof typeof headers) => ({ $ref: `#/components/headers/${name}` })

const rateHeaders = {
  'RateLimit-Policy': ref('RateLimitPolicy'),
  RateLimit: ref('RateLimit'),
  'X-RateLimit-Limit': ref('RateLimitLimit'),
  'X-RateLimit-Remaining': ref('RateLimitRemaining'),
  'X-RateLimit-Reset': ref('RateLimitReset'),
}

/** Refused before anybody knew whose request it is. */
const anonymous = new Set([401, 431])
const retryable = new Set([429, 503])

export interface MoreHeaders {
  /** A POST that succeeds may be a replay. */
  mayReplay?: boolean
  etag?: boolean
}

/** The headers of an answer with that status. */
export const headersOf = (status: number, { mayReplay = false, etag = false }: MoreHeaders = {}): object => ({
  'X-Request-Id': ref('RequestId'),
  ...(!anonymous.has(status) && rateHeaders),
  ...(retryable.has(status) && { 'Retry-After': ref('RetryAfter') }),
  ...(status === 401 && { 'WWW-Authenticate': ref('WwwAuthenticate') }),
  ...(etag && { ETag: ref('ETag') }),
  ...(status === 302 && { Location: ref('Location') }),
  ...(mayReplay && { 'Idempotent-Replayed': ref('IdempotentReplayed') }),
})
