import { type Budget, standingOf } from './budget.ts'

/** How the budget stands, as the IETF draft 10 writes it and as most clients read it (reset: when it is whole, epoch seconds). */
export function pushRateHeaders(headers: string[], kind: 'read' | 'write', budget: Budget): void {
  const { remaining, wholeInSeconds } = standingOf(budget)
  const limit = String(budget.perMinute)
  const left = String(remaining)
  headers.push(
    'RateLimit-Policy',
    `"${kind}";q=${limit};w=60`,
    'RateLimit',
    `"${kind}";r=${left};t=${wholeInSeconds}`,
    'X-RateLimit-Limit',
    limit,
    'X-RateLimit-Remaining',
    left,
    'X-RateLimit-Reset',
    String(Math.ceil(Date.now() / 1000) + wholeInSeconds),
  )
}
