import { Problem } from '@app/shared/api/problem.ts'
import type { FastifyRequest } from 'fastify'
import { clientIp, networkOf } from '../access/client-ip.ts'
import type { App } from '../app.ts'

/** A visitor loads a page, begins, completes, and asks again while that takes its time. */
const perMinute = 120

/** @throws `rate_limit_exceeded` for a network that asks too often: strangers come here without a key */
export async function admitVisitor({ limiter, trustedProxies }: App, { raw }: FastifyRequest): Promise<void> {
  const budget = limiter.budget(`setup:${networkOf(clientIp(raw, trustedProxies))}`, perMinute)
  if (await limiter.take(budget)) return
  throw new Problem('rate_limit_exceeded')
}
