import { z } from 'zod'

/** The one stream of all events. JetStream carries them; Postgres keeps them. */
export const streamName = 'EVENTS'

/** The header that carries EventHeaders as JSON. */
export const eventHeader = 'Svc-Event'

/** JetStream's own, by which it drops what it already has; an event may come without. */
export const idHeader = 'Nats-Msg-Id'

/** The header that carries an event's `seq` in the outbox that it comes from. */
export const outboxHeader = 'Svc-Outbox-Seq'

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
  duplicate: z.boolean().optional(),
  error: z.object({ err_code: z.number().optional(), description: z.string().optional() }).optional(),
})
export type PublishAck = z.output<typeof PublishAck>

/** What JetStream says of a publish: where in the stream it is, or why it is not; beside an error it gives the place 0. */
export const readPublishAck = (data: Uint8Array): PublishAck =>
  PublishAck.parse(JSON.parse(Buffer.from(data).toString()))

/** "duplicate message id is in process" (nats-server, `errors.json`). */
const idInProcess = 10_158

/**
 * Whether the server knows the id, and no place of it: it has proposed the event to the others, or has lost them before, and then
 * turns the id away for the whole `duplicate_window` (nats-server before 2.11, #6415, #6486).
 */
export const isIdWithoutPlace = ({ seq, duplicate, error }: PublishAck): boolean =>
  error ? error.err_code === idInProcess : duplicate === true && !seq
