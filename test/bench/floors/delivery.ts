import { createHmac } from 'node:crypto'
import { Pool } from 'undici'

// What a delivery is, for everybody who makes one here: an HMAC over time and body, and a POST.

export const connections = 100
const secret = 'whsec_Zp0mJbHc1S5rKq0e3oZkq0G5w5m8n2x7c9v1b3n5m7Q'

/** As long as the event that the project delivers beside it. */
const body = JSON.stringify({
  id: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD:sent',
  type: 'message.sent',
  created_at: '2026-03-01T12:00:00.000Z',
  data: {
    session: '106540352242922',
    direction: 'outbound',
    from_me: true,
    timestamp: '2026-03-01T12:00:00.000Z',
    message: {
      id: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
      provider_id: 'wamid.HBgLMTU1NTAxMjM0NTYVAgARGBI5',
      type: 'text',
      body: 'Your order is on its way and arrives tomorrow between nine and twelve.',
      from: '+15550001111',
      to: '+15550123456',
      status: 'sent',
      source: 'api',
      reply_to_provider_id: null,
    },
    conversation: { id: 'cnv_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', status: 'open' },
    contact: { id: 'ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', phone_number: '+15550123456', name: 'Ana' },
    meta: { phone_number_id: '106540352242922', display_phone_number: '+15550001111', provider: 'chat' },
  },
})

/** What a job carries: everything that its attempt needs. */
export interface Delivery {
  eventId: string
  body: string
}

export const deliveryOf = (prefix: string, n: number): Delivery => ({ eventId: `${prefix}:${n}`, body })

const headersOf = ({ eventId, body }: Delivery): Record<string, string> => {
  const time = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
  return {
    'content-type': 'application/json',
    'x-svc-event': 'message.sent',
    'x-svc-event-id': eventId,
    'x-svc-signature': `t=${time},v1=${signature}`,
  }
}

/** Posts in the cheapest way that undici has; answers the status. */
export const dispatch = (pool: Pool, delivery: Delivery): Promise<number> =>
  new Promise((resolve, reject) => {
    let status = 0
    pool.dispatch(
      { method: 'POST', path: '/', headers: headersOf(delivery), body: delivery.body },
      {
        onRequestStart() {},
        onResponseStart(_controller, answered) {
          status = answered
        },
        onResponseData() {},
        onResponseEnd: () => resolve(status),
        onResponseError: (_controller, err) => reject(err),
      },
    )
  })

/** Posts over kept connections; answers the status. */
export function createPoster(receiverUrl: string) {
  const pool = new Pool(receiverUrl, { connections })
  return {
    async post(delivery: Delivery) {
      const headers = headersOf(delivery)
      const answer = await pool.request({ method: 'POST', path: '/', headers, body: delivery.body })
      await answer.body.dump()
      return answer.statusCode
    },
    close: () => pool.close(),
  }
}
