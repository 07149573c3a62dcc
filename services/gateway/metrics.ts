import type { Service } from '@app/shared/service/service.ts'
import { counts, durations, gauge } from '@app/shared/metrics/registered.ts'
import type { InFlight } from './limits/in-flight.ts'
import type { RateLimiter } from './limits/rate-limit.ts'

/** A route as it was declared: its pattern holds no id, so it may be a label. */
export interface Route {
  method: string
  pattern: string
}

/** What is not one of ours, whatever it was. */
export const noRoute: Route = { method: 'other', pattern: 'none' }

/** What a gateway measures of its answers. */
export interface Meters {
  answered: (route: Route, status: number, durationMs: number) => void
  /** A failure that this gateway found itself, without asking a service. */
  refused: (failure: string) => void
}

export function createMeters({ probes: { metrics } }: Pick<Service, 'probes'>): Meters {
  const took = durations(metrics, {
    name: 'svc_http_request_seconds',
    help: 'Requests from their headers to their answer, by method, route pattern and status.',
    labelNames: ['method', 'route', 'status'],
  })
  const refusals = counts(metrics, {
    name: 'svc_http_refusals_total',
    help: 'Failures that the gateway answered by itself, by name: no key, no budget, a key that runs already.',
    labelNames: ['failure'],
  })
  return {
    answered: ({ method, pattern }, status, durationMs) =>
      took.observe({ method, route: pattern, status }, durationMs / 1_000),
    refused: (failure) => refusals.inc({ failure }),
  }
}

/** What stands in a gateway when Prometheus asks. */
export function exposeStanding(
  { probes: { metrics } }: Pick<Service, 'probes'>,
  inFlight: InFlight,
  limiter: RateLimiter,
): void {
  gauge(
    metrics,
    { name: 'svc_http_requests_in_flight', help: 'Requests that wait for a service.' },
    () => inFlight.count,
  )
  gauge(
    metrics,
    {
      name: 'svc_http_body_bytes_in_flight',
      help: 'Bytes of bodies in memory: of requests, and of large answers that leave.',
    },
    () => inFlight.bytes,
  )
  gauge(
    metrics,
    { name: 'svc_limiter_alone', help: 'Whether this gateway limits rates without Redis, which does not answer.' },
    () => (limiter.isAlone() ? 1 : 0),
  )
}
