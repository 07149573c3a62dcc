import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { withBus } from '@app/deploy/stack/bus.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { afterAll, beforeAll } from 'vitest'
import { type Collector, startCollector } from '../../collector.ts'
import { startPrivateServers } from '../../servers.ts'
import { type Receiver, startReceiver } from '../receiver.ts'
import { newFolder, type StartedStack, startStack } from '../start-stack.ts'

/** Something that passed over the bus, with its headers. */
interface Heard {
  subject: string
  text: string
}

/** What a stack says to others: over the bus from its start on, to Redis, in its traces, in its logs. */
export interface Overheard {
  stack: StartedStack
  postgresUrl: string
  collector: Collector
  receiver: Receiver
  /** What passed over the bus, and what is in the stream of events, up to now. */
  bus: () => Promise<{ heard: Heard[]; stored: Heard[] }>
  /** Every command that Redis got, with its arguments. */
  redis: () => string
}

/** A stack for the tests of a file, of which everything is overheard. */
export function overhear(args: string[]): Overheard {
  const folder = newFolder()
  const own = {} as Overheard
  const toClose: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
  beforeAll(async () => {
    const servers = await startPrivateServers(join(folder, 'servers'), undefined, { isDurable: false })
    toClose.push(() => servers.stop())
    const collector = await startCollector()
    const receiver = await startReceiver()
    const redis = monitor(servers.redisUrl)
    const bus = await listen(servers.natsUrl)
    toClose.push(collector.close, receiver.close, redis.close, bus.close)
    Object.assign(own, { collector, receiver, postgresUrl: servers.postgresUrl, redis: redis.text, bus: bus.read })
    own.stack = await startStack(args, join(folder, 'stack'), {
      DATABASE_URL: servers.postgresUrl,
      REDIS_URL: servers.redisUrl,
      NATS_URL: servers.natsUrl,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      LOG_LEVEL: 'debug',
    })
    toClose.push(() => own.stack.stop())
  })
  afterAll(async () => {
    for (const close of toClose.toReversed()) await close()
  })
  return own
}

/** The bus, whose server asks nobody who he is. */
async function listen(natsUrl: string) {
  const heard: Heard[] = []
  const { promise: isOver, resolve: close } = Promise.withResolvers<void>()
  const { promise: isOpen, resolve: opened } = Promise.withResolvers<() => Promise<Heard[]>>()
  const closed = withBus({ natsUrl }, async ({ nc }) => {
    nc.subscribe('>', {
      callback: (_, { subject, headers, data }) => {
        const carried = [...(headers ?? [])].map(([name, values]) => `${name}: ${values.join()}`)
        heard.push({ subject, text: [...carried, Buffer.from(data).toString()].join('\n') })
      },
    })
    await nc.flush()
    opened(async () => {
      await nc.flush()
      const { streams } = await nc.jetstreamManager()
      const { state } = await streams.info(streamName)
      const stored: Heard[] = []
      for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
        const { subject, data } = await streams.getMessage(streamName, { seq })
        stored.push({ subject, text: Buffer.from(data).toString() })
      }
      return stored
    })
    await isOver
  })
  const readStream = await isOpen
  return {
    read: async () => ({ stored: await readStream(), heard }),
    close: () => {
      close()
      return closed
    },
  }
}

function monitor(redisUrl: string) {
  const { hostname, port } = new URL(redisUrl)
  const chunks: string[] = []
  const socket = connect(Number(port), hostname, () => socket.write('MONITOR\r\n'))
  socket.on('data', (chunk) => chunks.push(chunk.toString()))
  return { text: () => chunks.join(''), close: () => socket.destroy() }
}
