import postgres from 'postgres'
import { answerParent } from '../child.ts'
import { createPoster, type Delivery, deliveryOf } from './delivery.ts'

export interface PeerSettings {
  receiverUrl: string
  postgresUrl: string
  redisUrl: string
}

/** A job queue: takes deliveries in bulk, and makes each with `attempt`. */
export interface Queue {
  add: (deliveries: Delivery[]) => Promise<unknown>
  close: () => Promise<unknown>
}

const bulk = 500

/**
 * A queue as one would use it for webhooks: enqueue, sign, POST, a row for the attempt in Postgres. Its workers run from the
 * start, so they deliver while deliveries are still added.
 */
export function answerAsPeer(
  open: (settings: PeerSettings, attempt: (delivery: Delivery) => Promise<void>) => Promise<Queue>,
) {
  let queue: Queue | undefined
  const commands = {
    async start(settings: PeerSettings) {
      const sql = postgres(settings.postgresUrl, { max: 10, onnotice: () => {} })
      await sql`
        create table if not exists attempts (
          id bigint generated always as identity primary key, event_id text not null, started_at timestamptz not null,
          duration_ms int not null, response_status int not null
        )
      `
      const poster = createPoster(settings.receiverUrl)
      queue = await open(settings, async (delivery) => {
        const startedAt = Date.now()
        const status = await poster.post(delivery)
        await sql`
          insert into attempts (event_id, started_at, duration_ms, response_status)
          values (${delivery.eventId}, ${new Date(startedAt)}, ${Date.now() - startedAt}, ${status})
        `
      })
    },
    /** Answers when the first was begun. */
    async burst({ count, prefix }: { count: number; prefix: string }) {
      const startedAt = Date.now()
      for (let from = 0; from < count; from += bulk) {
        const some = Math.min(bulk, count - from)
        await queue?.add(Array.from({ length: some }, (_, n) => deliveryOf(prefix, from + n)))
      }
      return { startedAt }
    },
  }
  answerParent(commands)
  return commands
}
export type QueuePeer = ReturnType<typeof answerAsPeer>
