import { oneByWeight, oneOf, type Random, type Weighted } from '@app/test/faults/random.ts'
import { type Receiver, startReceiver } from './receiver.ts'

/** How an endpoint answers. */
interface Mood {
  /** Null: it breaks the connection off. */
  status: number | null
  waitMs?: number
  retryAfter?: string
}

const well: Mood = { status: 200 }

/** Most are well most of the time: what is gone or fails for good takes everything else away. */
const moods: Weighted<Mood>[] = [
  [6, well],
  [4, { status: 200, waitMs: 300 }],
  [3, { status: 500 }],
  [2, { status: 429, retryAfter: '1' }],
  [2, { status: null }],
  [1, { status: 410 }],
]

/** A request that an endpoint got, in the order in which they came to all of them. */
export interface Seen {
  deliveryId: string
  number: number
  eventId: string
  signature: string
  body: Buffer
  /** What it answers. */
  status: number | null
}

export interface MoodyEndpoints {
  urls: string[]
  seen: Seen[]
  /** One of them changes its mood. */
  change: (random: Random) => void
  /** All of them answer well from now on. */
  calm: () => void
  close: () => Promise<void>
}

export async function startMoodyEndpoints(count: number): Promise<MoodyEndpoints> {
  const seen: Seen[] = []
  const receivers = await Promise.all(Array.from({ length: count }, startReceiver))
  const moodOf = new Map<Receiver, Mood>()
  for (const receiver of receivers) {
    receiver.respondWith((response, { headers, body }) => {
      const { status, waitMs = 0, retryAfter = '' } = moodOf.get(receiver) ?? well
      seen.push({
        deliveryId: String(headers['x-svc-delivery-id']),
        number: Number(headers['x-svc-attempt']),
        eventId: String(headers['x-svc-event-id']),
        signature: String(headers['x-svc-signature']),
        body,
        status,
      })
      if (status === null) return void response.destroy()
      setTimeout(() => response.writeHead(status, retryAfter ? { 'retry-after': retryAfter } : {}).end(), waitMs)
    })
  }
  return {
    urls: receivers.map(({ url }) => url),
    seen,
    change: (random) => void moodOf.set(oneOf(random, receivers), oneByWeight(random, moods)),
    calm: () => moodOf.clear(),
    close: async () => void (await Promise.all(receivers.map((receiver) => receiver.close()))),
  }
}
