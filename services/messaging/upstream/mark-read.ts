import { Problem } from '@app/shared/api/problem.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import { z } from 'zod'
import { askUpstream, UpstreamRefusal } from './ask-upstream.ts'
import { theirProduct } from './words.ts'

interface Receipt {
  phoneNumberId: string
  token: string
  /** The inbound message, by the platform's id. */
  message_id: string
  typing_indicator?: { type: 'text' } | undefined
}

const Answer = z.object({ success: z.literal(true) })

/**
 * Tells the platform that a message was read, until the deadline (performance.now) at most.
 * @throws `UpstreamRefusal` when it refuses, `upstream_unavailable` when it does not answer properly.
 */
export async function markRead(upstream: Upstream, receipt: Receipt, deadline: number): Promise<void> {
  const { phoneNumberId, token, message_id, typing_indicator } = receipt
  const json = { messaging_product: theirProduct, status: 'read', message_id, typing_indicator }
  await askUpstream(
    upstream,
    { method: 'POST', path: `/${phoneNumberId}/messages`, token, json, answer: Answer },
    deadline,
  )
}

/** What the platform refused about a receipt, for our caller: for good, its detail kept, or for now. */
export function receiptRefusalOf(err: unknown): unknown {
  if (!(err instanceof UpstreamRefusal)) return err
  if (err.isPassing) return new Problem('upstream_unavailable', { cause: err })
  return new Problem('upstream_refused', {
    message: `The upstream platform refused the read receipt: ${err.sentence}`,
    cause: err,
  })
}
