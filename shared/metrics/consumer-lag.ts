import type { DataService } from '../service/service.ts'
import { streamName } from '../events/stream.ts'
import { readings } from './readings.ts'

/** How far a durable consumer is behind the stream. All instances of a service share it, and all say the same. */
export function readConsumerLag(
  { eventBus: { nc, isConnected }, probes }: Pick<DataService, 'eventBus' | 'probes'>,
  consumer: string,
): void {
  const labels = { consumer }
  const help = 'Events that the stream holds for a consumer'
  readings(
    probes.metrics,
    consumer,
    {
      svc_consumer_waiting_events: { help: `${help} and that it was not given yet.`, labelNames: ['consumer'] },
      svc_consumer_unacked_events: { help: `${help}, given and not acked yet.`, labelNames: ['consumer'] },
    },
    async () => {
      if (!isConnected()) throw new Error('the bus is away')
      const { num_pending, num_ack_pending } = await (
        await nc.jetstream().consumers.get(streamName, consumer)
      ).info(true)
      return [
        { gauge: 'svc_consumer_waiting_events', labels, value: num_pending },
        { gauge: 'svc_consumer_unacked_events', labels, value: num_ack_pending },
      ]
    },
  )
}
