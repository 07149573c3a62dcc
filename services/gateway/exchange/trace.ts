import { randomBytes } from 'node:crypto'
import type { Service } from '@app/shared/service/service.ts'
import { type Span, unsampled } from '@app/shared/service/tracing.ts'
import type { Route } from '../metrics.ts'

const given = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

const pool = { text: '', used: 0 }
const poolBytes = 6 * 1024
const traceLength = 32
const spanLength = 16

/** The W3C trace context of a request: the client's own, when it is well-formed, or a new one. */
export function traceparentOf(header: string | string[] | undefined): string {
  if (isGiven(header)) return header
  return `00-${randomHex(traceLength)}-${randomHex(spanLength)}-00`
}

const isGiven = (header: string | string[] | undefined): header is string =>
  typeof header === 'string' && given.test(header)

interface Traced {
  span: Span | null | undefined
  /** Of the span, or as `traceparentOf` says; where there are traces but none of this request, it asks for none. */
  traceparent: string
}

/** The span of a request: below its client's, where that has one. Whether there is one the operator's share decides. */
export function traceRequest(
  { tracer }: Pick<Service, 'tracer'>,
  header: string | string[] | undefined,
  route: Route,
): Traced {
  const name = `${route.method} ${route.pattern}`
  const span = tracer?.beginTrace(name, { kind: 'server', parent: isGiven(header) ? header : undefined })
  if (span) return { span, traceparent: span.traceparent }
  const traceparent = traceparentOf(header)
  return { span, traceparent: tracer ? unsampled(traceparent) : traceparent }
}

/** From a pool, since a call to the system's generator costs more than the whole rest. */
function randomHex(length: number) {
  if (pool.used + length > pool.text.length) {
    pool.text = randomBytes(poolBytes).toString('hex')
    pool.used = 0
  }
  pool.used += length
  return pool.text.slice(pool.used - length, pool.used)
}
