import type { DataService } from '../service/service.ts'
import { streamName } from '../events/stream.ts'
import { readings } from './readings.ts'

/** How many of the other nats-servers of a cluster have not what the leader of the stream has. All services say the same. */
export function readStreamCopies({ eventBus, probes }: Pick<DataService, 'eventBus' | 'probes'>): void {
  readings(
    probes.metrics,
    streamName,
    {
      svc_stream_copies_behind: { help: 'Copies of the event stream that are away, or behind its leader.' },
    },
    async () => {
      if (!eventBus.isConnected()) throw new Error('the bus is away')
      const jsm = await eventBus.nc.jetstreamManager({ checkAPI: false })
      const { cluster } = await jsm.streams.info(streamName)
      const behind = (cluster?.replicas ?? []).filter(({ current, offline }) => offline === true || !current)
      return [{ gauge: 'svc_stream_copies_behind', value: behind.length }]
    },
  )
}
