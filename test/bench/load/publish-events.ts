import { type BusPlace, operatorOptions } from '@app/deploy/stack/bus.ts'
import { messageSent } from '@app/shared/contracts/messaging.ts'
import { recorded } from '@app/shared/events/events.ts'
import { eventHeader } from '@app/shared/events/stream.ts'
import { connect, headers, type JetStreamClient } from 'nats'
import { answerParent } from '../child.ts'
import { epochMs } from './clock.ts'
import { inParallel } from './in-parallel.ts'
import { pace } from './pace.ts'

// Puts events on the stream, as the relay of messaging does, without the sends that they tell of.

interface Events {
  bus: BusPlace
  organizationId: string
  /** The numbers take turns. */
  phoneNumberIds: string[]
  /** Begins the event ids: two calls must not share one. */
  prefix: string
}

export interface PublishedEvent {
  eventId: string
  /** Epoch milliseconds. */
  at: number
}

/** As many as the relay has outstanding. */
const outstanding = 256
const contact = { id: 'ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', phone_number: '+15550123456', name: 'Ana' }

/** As it stands in an outbox. */
function eventOf({ organizationId, phoneNumberIds, prefix }: Events, n: number) {
  const phoneNumberId = phoneNumberIds[n % phoneNumberIds.length] ?? ''
  return recorded(messageSent, dataOf(phoneNumberId), { organizationId, id: `${prefix}:${n}`, phoneNumberId })
}

async function publish(js: JetStreamClient, event: ReturnType<typeof eventOf>) {
  const carrier = headers()
  carrier.set(eventHeader, JSON.stringify(event.headers))
  await js.publish(event.subject, event.payload, { msgID: event.id, headers: carrier })
}

const dataOf = (phoneNumberId: string) => ({
  session: phoneNumberId,
  direction: 'outbound' as const,
  from_me: true as const,
  timestamp: new Date().toISOString(),
  message: {
    id: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
    provider_id: 'wamid.HBgLMTU1NTAxMjM0NTYVAgARGBI5',
    type: 'text',
    body: 'Your order is on its way and arrives tomorrow between nine and twelve.',
    from: '+15550001111',
    to: '+15550123456',
    status: 'sent',
    source: 'api' as const,
    reply_to_provider_id: null,
  },
  conversation: { id: 'cnv_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', status: 'open' },
  contact,
  meta: { phone_number_id: phoneNumberId, display_phone_number: '+15550001111', provider: 'chat' as const },
})

const commands = {
  /** So many as fast as the stream takes them; answers when the first was begun. They are there before, as the jobs of other queues are. */
  async burst(input: Events & { count: number }) {
    const events = Array.from({ length: input.count }, (_, n) => eventOf(input, n))
    const nc = await connect({ ...operatorOptions(input.bus), noAsyncTraces: true })
    const js = nc.jetstream()
    const startedAt = Date.now()
    await inParallel(outstanding, events, (event) => publish(js, event))
    await nc.close()
    return { startedAt }
  },
  /** So many a second for so long. */
  async paced(input: Events & { ratePerSecond: number; seconds: number }) {
    const nc = await connect({ ...operatorOptions(input.bus), noAsyncTraces: true })
    const js = nc.jetstream()
    const events: PublishedEvent[] = []
    await pace(input.ratePerSecond, input.seconds, async (n) => {
      const at = epochMs()
      const event = eventOf(input, n)
      await publish(js, event)
      events.push({ eventId: event.headers.event, at })
    })
    await nc.close()
    return events
  },
}
export type PublishEvents = typeof commands
answerParent(commands)
