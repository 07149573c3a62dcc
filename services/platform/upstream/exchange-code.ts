import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '@app/shared/api/problem.ts'
import { z } from 'zod'
import type { App } from '../app.ts'
import { askUpstream } from './ask-upstream.ts'

const Answer = z.object({ access_token: z.string().min(1) })
const againMs = 1_000

/**
 * Exchanges a dialog's code, which lives for 30 s and is good for once, for the token that uses the business account. While
 * the platform is not available it is asked again until the deadline.
 */
export async function exchangeCode(
  { upstream, upstreamAppSecret }: Pick<App, 'upstream' | 'upstreamAppSecret'>,
  code: string,
  deadline: number,
): Promise<string> {
  const query = new URLSearchParams({ client_id: upstream.appId, client_secret: upstreamAppSecret, code })
  const path = `/oauth/access_token?${query.toString()}`
  for (;;) {
    try {
      const question = { method: 'GET', path, token: null, answer: Answer, param: 'code' } as const
      const { access_token: token } = await askUpstream(upstream, question, deadline)
      return token
    } catch (err) {
      const isPassing = err instanceof Problem && err.failure === 'upstream_unavailable'
      if (!isPassing || performance.now() + againMs >= deadline) throw err
      await sleep(againMs)
    }
  }
}
