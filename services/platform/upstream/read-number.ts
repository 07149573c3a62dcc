import { z } from 'zod'
import { toE164 } from '@app/shared/values/phone-number.ts'
import { askUpstream } from './ask-upstream.ts'
import { messagesPerSecondOf, Throughput, throughputFields } from './throughput.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'

/** A number, as the platform tells of it. */
export interface UpstreamNumber {
  /** E.164. */
  phoneNumber: string | null
  name: string | null
  /** The platform's own word. */
  status: string | null
  /** Null: the platform's usual 80. */
  messagesPerSecond: number | null
}

/** A number in an answer of the platform, which was asked for `numberFields`. */
export const NumberAnswer = Throughput.extend({
  id: z.string(),
  display_phone_number: z.string().nullish(),
  verified_name: z.string().nullish(),
  status: z.string().nullish(),
})

export const numberFields = `id,display_phone_number,verified_name,status,${throughputFields}`

export const toNumber = (number: z.output<typeof NumberAnswer>): UpstreamNumber => ({
  phoneNumber: toE164(number.display_phone_number ?? ''),
  name: number.verified_name || null,
  status: number.status ?? null,
  messagesPerSecond: messagesPerSecondOf(number),
})

export async function readNumber(
  upstream: Upstream,
  { phoneNumberId, token, signal }: { phoneNumberId: string; token: string; signal?: AbortSignal | undefined },
  deadline: number,
): Promise<UpstreamNumber> {
  const path = `/${phoneNumberId}?fields=${numberFields}`
  const answer = NumberAnswer.extend({ id: z.literal(phoneNumberId) })
  const question = { method: 'GET', path, token, signal, answer, param: 'phone_number_id' } as const
  return toNumber(await askUpstream(upstream, question, deadline))
}
