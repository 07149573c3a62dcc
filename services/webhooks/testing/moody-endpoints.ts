import { oneOf, type Random } from '@app/test/faults/random.ts'
import { type Receiver, startReceiver } from './receiver.ts'

/** How an endpoint answers; null: it breaks the connection off. */
const moods = {
  ok: { status: 200 },
  slow: { status: 200, waitMs: 300 },
  failing: { status: 500 },
  busy: { status: 429, retryAfter: '1' },
  gone: { status: 410 },
  broken: { status: null },
} satisfies Record<string, { status: number | null; waitMs?: number; retryAfter?: string }>
type Mood = keyof typeof moods

/** Most are well most of the time: what is gone or fails for good takes everything else away. */
const drawn: Mood[] = [
  ...(['ok', 'ok', 'ok', 'ok', 'ok', 'ok', 'slow', 'slow', 'slow', 'slow'] as const),
  ...(['failing', 'failing', 'failing', 'busy', 'busy', 'broken', 'broken', 'gone'] as const),
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
      const { status, waitMs = 0, retryAfter = '' } = whole(moods[moodOf.get(receiver) ?? 'ok'])
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
    change: (random) => void moodOf.set(oneOf(random, receivers), oneOf(random, drawn)),
    calm: () => moodOf.clear(),
    close: async () => void (await Promise.all(receivers.map((receiver) => receiver.close()))),
  }
}

const whole = (mood: { status: number | null; waitMs?: number; retryAfter?: string }) => mood
