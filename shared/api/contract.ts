import { z } from 'zod'
import type { FailureName } from './problem.ts'

/** How a question is asked from outside. The method decides the budget (GET reads, all else writes) and the key (every POST). */
export interface Http {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below `/v1`, with parameters as `{name}`. */
  path: `/${string}`
  /** The success status; 200 unless told otherwise. */
  status?: 200 | 201 | 202 | 302 | undefined
  /** A second success status, which the handler answers itself (`WholeAnswer`). */
  otherStatus?: 200 | undefined
  /** Its answers have a weak ETag, and `If-None-Match` is answered with 304. For GET. */
  etag?: boolean | undefined
  /** The group in the API documentation. */
  tag: string
  /** The organization must be entitled to it, else `feature_not_entitled`. */
  feature?: 'platform' | 'webhooks' | undefined
  /** The platform, or the host of a file, is asked before the answer: its client waits longer for it. */
  asksOutside?: true | undefined
  /** The client sends a multipart form with one file; the gateway stores it, and the body tells the service where. */
  takesFile?: boolean | undefined
}

/** A question one service answers. With `http` it is also a public endpoint. */
export interface Rpc<
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  B extends z.ZodType = z.ZodType,
  A extends z.ZodType = z.ZodType,
  L extends boolean = boolean,
> {
  kind: 'rpc'
  subject: `rpc.${string}.${string}`
  summary: string
  description?: string | undefined
  http?: Http | undefined
  /** Asked twice, it does and answers the same. Every GET and what comes with an idempotency key is, without saying so. */
  repeatable?: true | undefined
  params: P
  query: Q
  body: B
  /** Which part of a union the body has to fit, so that its faults are of that part. Throws when it cannot be told. */
  variant?: ((body: object) => z.ZodType) | undefined
  /** One resource, or with `list` the item of a page. What it does not name is stripped. */
  answer: A
  list: L
  /** What it may fail with, beside what every endpoint may (section 7 of the public API). */
  errors: readonly FailureName[]
  /** Examples for the API documentation, checked against the schemas by a test. */
  example?: { body?: unknown; answer: unknown } | undefined
}

/** A fact one service tells; any service may listen. With `webhook` it is also delivered to subscribers. */
export interface Event<D extends z.ZodType = z.ZodType> {
  kind: 'event'
  subject: `event.${string}.${string}`
  summary: string
  /** The public event: its name, and whether the body is the upstream's envelope or our native one. */
  webhook?: { type: string; source: 'upstream' | 'svc' } | undefined
  data: D
}

/**
 * What one service says to all instances of others at once. Nobody keeps it, and who is not connected just then does not hear
 * it, but knows that it missed something: it is for what a memory may forget before its time, and what must arrive is an event.
 */
export interface Notice<D extends z.ZodType = z.ZodType> {
  kind: 'notice'
  subject: `notice.${string}.${string}`
  summary: string
  data: D
  /** What is said while there is nothing to say. */
  nothing: z.input<D>
}

/** Who is asking. Travels in message headers, never in the input, so that no body can claim another tenant. */
export interface Caller {
  organizationId: string
  keyId: string
  requestId: string
  /** Moment (performance.now of this process) after which nobody waits for the answer. */
  deadline: number
  /** W3C trace context of the request. */
  traceparent: string
  idempotency?: { key: string; fingerprint: string } | undefined
}

/** One page of a list, as the handler gives it. */
export interface Page<T> {
  data: T[]
  has_more: boolean
  next_cursor: string | null
}

/** A whole answer in bytes: what was stored for an idempotency key, or an answer with another status than the usual one. */
export interface WholeAnswer {
  whole: true
  status: number
  body: Uint8Array
  replayed: boolean
  /** Where a redirection leads. */
  location?: string | undefined
}

export interface Input<C extends Rpc> {
  params: z.output<C['params']>
  query: z.output<C['query']>
  body: z.output<C['body']>
}

export type Answer<C extends Rpc> =
  C extends Rpc<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType, infer L>
    ? L extends true
      ? Page<z.input<C['answer']>>
      : z.input<C['answer']>
    : never

export type Handler<App, C extends Rpc> = (
  app: App,
  input: Input<C>,
  caller: Caller,
) => Promise<Answer<C> | WholeAnswer>

/** One handler for every Rpc a contract module exports: a missing or misspelt one does not compile. */
export type Handlers<App, M> = {
  [K in keyof M as M[K] extends Rpc ? K : never]: M[K] extends Rpc ? Handler<App, M[K]> : never
}

const nothing = z.object({})
type Nothing = typeof nothing

interface Declared<P, Q, B, A, L> {
  subject: `rpc.${string}.${string}`
  summary: string
  description?: string
  http?: Http
  repeatable?: true
  params?: P
  query?: Q
  body?: B
  variant?: (body: object) => z.ZodType
  answer: A
  list?: L
  errors?: readonly FailureName[]
  example?: { body?: unknown; answer: unknown }
}

export function rpc<
  P extends z.ZodObject = Nothing,
  Q extends z.ZodObject = Nothing,
  B extends z.ZodType = z.ZodUndefined,
  A extends z.ZodType = z.ZodType,
  L extends boolean = false,
>(declared: Declared<P, Q, B, A, L>): Rpc<P, Q, B, A, L> {
  return {
    errors: [],
    ...declared,
    kind: 'rpc',
    params: declared.params ?? (nothing as unknown as P),
    query: declared.query ?? (nothing as unknown as Q),
    body: declared.body ?? (z.undefined() as unknown as B),
    list: declared.list ?? (false as L),
  }
}

export const event = <D extends z.ZodType>(declared: Omit<Event<D>, 'kind'>): Event<D> => ({
  ...declared,
  kind: 'event',
})

export const notice = <D extends z.ZodType>(declared: Omit<Notice<D>, 'kind'>): Notice<D> => ({
  ...declared,
  kind: 'notice',
})

const isKind = (value: unknown, kind: string) =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === kind
export const isRpc = (value: unknown): value is Rpc => isKind(value, 'rpc')
export const isEvent = (value: unknown): value is Event => isKind(value, 'event')
export const isNotice = (value: unknown): value is Notice => isKind(value, 'notice')
