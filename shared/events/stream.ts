import { z } from 'zod'

/** The one stream of all events. JetStream carries them; Postgres keeps them. */
export const streamName = 'EVENTS'

/** The header that carries EventHeaders as JSON. */
export const eventHeader = 'Svc-Event'

const day = 24 * 60 * 60 * 1e9

/** More is dropped, the oldest first (stream-room.ts sees to it that it was handled). */
export const streamBytes = 8 * 1024 ** 3

/** Fields that nats-server 2.9 knows and 2.12 accepts; newer ones are silently ignored by the older. Durations in ns. */
export const streamConfig = (replicas: number) => ({
  name: streamName,
  subjects: ['event.>'],
  max_age: 3 * day,
  max_bytes: streamBytes,
  duplicate_window: 120 * 1e9,
  num_replicas: replicas,
})

const PublishAck = z.object({
  seq: z.number().optional(),
  error: z.object({ description: z.string().optional() }).optional(),
})

/** What JetStream says of a publish: where in the stream it is, or why it is not; beside an error it gives the place 0. */
export const readPublishAck = (data: Uint8Array): z.output<typeof PublishAck> =>
  PublishAck.parse(JSON.parse(Buffer.from(data).toString()))
