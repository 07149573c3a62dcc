import { z } from 'zod'
import { askUpstream } from './ask-upstream.ts'
import { NumberAnswer, numberFields, toNumber, type UpstreamNumber } from './read-number.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'

export interface ListedNumber extends UpstreamNumber {
  phoneNumberId: string
  /** Also in use in the phone's app, so that it is never registered. */
  isInBusinessApp: boolean
}

const Answer = z.object({
  data: z.array(NumberAnswer),
  paging: z
    .object({ next: z.string().optional(), cursors: z.object({ after: z.string() }).partial().optional() })
    .nullish(),
})

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
    const path = `/${businessAccountId}/phone_numbers?fields=${numberFields}&limit=100${place}`
    const question = { method: 'GET', path, token, signal, answer: Answer, param: 'business_account_id' } as const
    const { data, paging } = await askUpstream(upstream, question, deadline)
    numbers.push(...data.map(toListed))
    // Only the cursor is taken over: the bearer never goes to a URL that an answer names.
    after = paging?.next === undefined ? undefined : paging.cursors?.after
    if (after === undefined) break
  }
  return numbers
}

const toListed = (number: z.output<typeof NumberAnswer>): ListedNumber => ({
  phoneNumberId: number.id,
  ...toNumber(number),
  isInBusinessApp: number.is_on_biz_app === true,
})
