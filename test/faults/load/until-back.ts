import { setTimeout as sleep } from 'node:timers/promises'
import type { Call } from '../history/history.ts'
import { randomOf } from '../random.ts'
import type { LoadTenant } from './tenants.ts'

/** Asks for contacts until the answer is a success; answers the requests that were none, and when the success came. */
export async function untilBack({ client, phones }: LoadTenant): Promise<{ failed: Call[]; at: number }> {
  const random = randomOf(0, 'back')
  const failed: Call[] = []
  for (;;) {
    const call = await client.once(random, 'GET', `/${phones[0]}/contacts`)
    if (call.status === 200) return { failed, at: call.endedAt }
    failed.push(call)
    await sleep(20)
  }
}
