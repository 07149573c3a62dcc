import { type RequestToSend, uniqueDigits } from '../load/wrk.ts'
import type { Recipient } from './write-in.ts'

/** A text message to each recipient; no two bodies are the same. */
export const sendRequests = (recipients: Recipient[], key: string, keyed: boolean): RequestToSend[] =>
  recipients.map(({ phoneNumberId, to }) => ({
    method: 'POST',
    path: `/v1/${phoneNumberId}/messages`,
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(keyed && { 'idempotency-key': `bench-${uniqueDigits}` }),
    },
    body: JSON.stringify({
      messaging_product: 'chat',
      to,
      type: 'text',
      text: { body: `Your order ${unescaped} is on its way and arrives tomorrow between nine and twelve.` },
    }).replace(unescaped, uniqueDigits),
  }))

/** JSON would escape the byte that stands for the digits. */
const unescaped = '#digits#'
