import { z } from 'zod'
import { askUpstream } from './ask-upstream.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'

const Answer = z.object({ success: z.literal(true) })

/** Lets the platform send the business account's callbacks to our app; as often as it is called. */
export async function subscribeApp(
  upstream: Upstream,
  { businessAccountId, token, signal }: { businessAccountId: string; token: string; signal?: AbortSignal | undefined },
  deadline: number,
): Promise<void> {
  if (!upstream.subscribesApps) return
  const path = `/${businessAccountId}/subscribed_apps`
  const question = { method: 'POST', path, token, signal, answer: Answer, param: 'business_account_id' } as const
  await askUpstream(upstream, question, deadline)
}
