import type { ConsumerInfo, NatsConnection } from 'nats'
import { counts } from '../metrics/registered.ts'
import { askAgainMs } from './provision.ts'
import type { DataService } from '../service/service.ts'
import { streamName } from './stream.ts'

/**
 * Tells when events have left the stream for their age before a consumer had handled them, which nobody would notice otherwise. To be
 * called before the consumer goes on, since its place moves over the gap then. Only a consumer of all events can tell: what is gone may
 * not have been meant for another one.
 */
export async function tellMissedEvents({ eventBus, log, probes }: DataService, consumer: ConsumerInfo): Promise<void> {
  if (consumer.config.filter_subject !== 'event.>') return
  const count = counts(probes.metrics, {
    name: 'svc_consumer_missed_events_total',
    help: 'Events that left the stream by their age before this consumer had handled them.',
    labelNames: ['consumer'],
    from: [[consumer.name]],
  })
  const missed = (await oldestIn(eventBus.nc)) - consumer.ack_floor.stream_seq - 1
  if (missed <= 0) return
  count.inc({ consumer: consumer.name }, missed)
  log.error(
    { consumer: consumer.name, missed },
    'events left the stream before they were handled: publish them again (docs/running.md, EventsMissed)',
  )
}

async function oldestIn(nc: NatsConnection) {
  const jsm = await nc.jetstreamManager({ checkAPI: false, timeout: askAgainMs })
  return (await jsm.streams.info(streamName)).state.first_seq
}
