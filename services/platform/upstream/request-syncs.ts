import { Problem } from '@app/shared/api/problem.ts'
import { z } from 'zod'
import type { App } from '../app.ts'
import { askUpstream } from './ask-upstream.ts'

const Answer = z.looseObject({})

/**
 * Asks for the contacts and the history of a number that stays in the phone's app: once each, within 24 hours. The number
 * works without them, so what is refused for good (asked for already; too late; declined in the phone's app) is only noted.
 */
export async function requestSyncs(
  { upstream, log }: Pick<App, 'upstream' | 'log'>,
  { phoneNumberId, token, signal }: { phoneNumberId: string; token: string; signal: AbortSignal | undefined },
  deadline: number,
): Promise<void> {
  const path = `/${phoneNumberId}/smb_app_data`
  for (const sync_type of ['smb_app_state_sync', 'history']) {
    const body = { messaging_product: 'whatsapp', sync_type }
    const call = { method: 'POST', path, token, signal, json: body } as const
    await askUpstream(upstream, { ...call, answer: Answer, param: 'phone_number_id' }, deadline).catch(
      (err: unknown) => {
        if (!(err instanceof Problem) || err.status >= 500) throw err
        log.warn({ err, number: phoneNumberId, sync: sync_type }, 'the platform refuses the data of the phone app')
      },
    )
  }
}
