import { z } from 'zod'
import { toE164 } from '@app/shared/values/phone-number.ts'
import { askUpstream } from './ask-upstream.ts'
import { messagesPerSecondOf, Throughput, throughputFields } from './throughput.ts'
import type { UpstreamNumber } from './read-number.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'

export interface ListedNumber extends UpstreamNumber {
  phoneNumberId: string
  /** Also in use in the phone's app, so that it is never registered. */
  isInBusinessApp: boolean
}

const Answer = z.object({
  data: z.array(
    Throughput.extend({
      id: z.string(),
      display_phone_number: z.string().nullish(),
      verified_name: z.string().nullish(),
      status: z.string().nullish(),
    }),
  ),
  paging: z
    .object({ next: z.string().optional(), cursors: z.object({ after: z.string() }).partial().optional() })
    .nullish(),
})

const fields = `id,display_phone_number,verified_name,status,${throughputFields}`
/** A business account has at most some hundred numbers. */
const maxPages = 20

/** Every number of a business account. */
export async function listNumbers(
  upstream: Upstream,
  { businessAccountId, token, signal }: { businessAccountId: string; token: string; signal?: AbortSignal | undefined },
  deadline: number,
): Promise<ListedNumber[]> {
  const numbers: ListedNumber[] = []
  let after: string | undefined
  for (let n = 0; n < maxPages; n++) {
    const place = after === undefined ? '' : `&after=${encodeURIComponent(after)}`
    const path = `/${businessAccountId}/phone_numbers?fields=${fields}&limit=100${place}`
    const question = { method: 'GET', path, token, signal, answer: Answer, param: 'business_account_id' } as const
    const { data, paging } = await askUpstream(upstream, question, deadline)
    numbers.push(...data.map(toNumber))
    // Only the cursor is taken over: the bearer never goes to a URL that an answer names.
    after = paging?.next === undefined ? undefined : paging.cursors?.after
    if (after === undefined) break
  }
  return numbers
}

const toNumber = (number: z.output<typeof Answer>['data'][number]): ListedNumber => ({
  phoneNumberId: number.id,
  phoneNumber: toE164(number.display_phone_number ?? ''),
  name: number.verified_name || null,
  status: number.status ?? null,
  messagesPerSecond: messagesPerSecondOf(number),
  isInBusinessApp: number.is_on_biz_app === true,
})
