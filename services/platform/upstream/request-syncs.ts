import type { Upstream } from '@app/shared/upstream.ts'
import { z } from 'zod'
import { askUpstream } from './ask-upstream.ts'
import { upstreamErrorOf } from './refusals.ts'

const Answer = z.looseObject({})
/** Asked for already; too late; declined in the phone's app. */
const settled = new Set([2593107, 2593108, 2593109])

/** Asks for the contacts and the history of a number that stays in the phone's app: once each, within 24 hours. */
export async function requestSyncs(
  upstream: Upstream,
  { phoneNumberId, token }: { phoneNumberId: string; token: string },
  deadline: number,
): Promise<void> {
  const path = `/${phoneNumberId}/smb_app_data`
  for (const sync_type of ['smb_app_state_sync', 'history']) {
    const body = { messaging_product: 'whatsapp', sync_type }
    const question = { method: 'POST', path, token, json: body, answer: Answer, param: 'phone_number_id' } as const
    await askUpstream(upstream, question, deadline).catch((err: unknown) => {
      if (!settled.has(upstreamErrorOf(err)?.code ?? 0)) throw err
    })
  }
}
