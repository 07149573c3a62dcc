import type { NatsConnection } from 'nats'
import type { Logger } from 'pino'
import { type Bus, connectBus } from '../bus/bus.ts'
import { openDatabase, type Sql } from '../database/database.ts'
import type { CommonEnv } from './environment.ts'
import { keepHeapSmall } from './heap.ts'
import { createLog } from './log.ts'
import { readDatabase } from '../metrics/database-readings.ts'
import { timeQuestions } from '../metrics/questions.ts'
import { type Probes, startProbes } from './probes.ts'
import { createTracer, type Tracer } from './tracing.ts'
import { waitForMigrations } from '../database/wait-for-migrations.ts'

export type ServiceName = 'gateway' | 'messaging' | 'directory' | 'platform' | 'webhooks'

/** What every service has. */
export interface Service extends Bus {
  name: ServiceName
  log: Logger
  nc: NatsConnection
  probes: Probes
  /** Undefined unless traces are wanted. */
  tracer?: Tracer | undefined
  /** Copies of the event stream in a cluster of nats-servers. */
  streamReplicas: number
}

/** A service that owns a Postgres schema of its name. */
export interface DataService extends Service {
  sql: Sql
  /**
   * A connection of their own for the events that it publishes and consumes. A nats-server of 2.9 whose disk was full reads no
   * more of what comes from a connection that has asked JetStream something: questions and answers must not wait behind it.
   */
  eventBus: Bus
}

/** Probes first (alive, not ready), then the bus, for which it waits as long as it takes. */
export async function start(name: ServiceName, env: CommonEnv): Promise<Service> {
  keepHeapSmall()
  endOnSignals()
  const log = createLog(name, env.LOG_LEVEL)
  const probes = await startProbes(env.PROBE_PORT, env.PROBE_HOST)
  probes.metrics.setDefaultLabels({ service: name })
  probes.addCheck('starting', () => false)
  const tracer = await createTracer(name, env)
  const bus = await connectBus(name, env.NATS_URL, log, { nkeySeed: env.NATS_NKEY_SEED })
  probes.addCheck('nats', bus.isConnected)
  exitWhenClosed(bus.nc, log)
  const request = timeQuestions(bus.request, probes.metrics)
  return { name, log, probes, tracer, streamReplicas: env.NATS_REPLICAS, ...bus, request }
}

/** As `start`, and the service's schema, for which it waits too. */
export async function startWithDatabase(
  name: ServiceName,
  env: CommonEnv & { DATABASE_URL: string },
): Promise<DataService> {
  const service = await start(name, env)
  const eventBus = await connectBus(name, env.NATS_URL, service.log, { nkeySeed: env.NATS_NKEY_SEED })
  exitWhenClosed(eventBus.nc, service.log)
  const sql = openDatabase(env.DATABASE_URL, name)
  outliveLostLogins(service.log)
  service.probes.addCheck('postgres', async () => (await sql`select 1`).length === 1)
  await waitForMigrations(sql, service)
  readDatabase({ ...service, sql })
  return { ...service, sql, eventBus }
}

/** Both connections to the bus say what they have left to say, and close. */
export const drainBus = ({ nc, eventBus }: DataService) => Promise.all([nc.drain(), eventBus.nc.drain()])

/** The service answers from now on: the bus knows all that it serves, so that whoever asks once it is ready finds it. */
export async function markReady({ nc, probes, log }: Service): Promise<void> {
  // Cut off meanwhile, the bus is told anew when it is back, and until then another check fails.
  await nc.flush().catch(() => {})
  probes.addCheck('starting', () => true)
  log.info({ probes: probes.url }, 'ready')
}

/**
 * The driver reads the array types after each login with a query that nobody awaits (postgres 3.4.9, `fetchArrayTypes`).
 * When the server goes away just then, that rejection would end the process; any other unhandled one still does.
 */
function outliveLostLogins(log: Logger) {
  if (process.listenerCount('unhandledRejection') > 0) return
  process.on('unhandledRejection', (err: unknown) => {
    const code = err instanceof Error && 'code' in err ? String(err.code) : ''
    if (!/^CONNECTION_(CLOSED|DESTROYED|ENDED)$/.test(code)) throw err
    log.warn({ err }, 'a login was lost')
  })
}

function exitWhenClosed(nc: NatsConnection, log: Logger) {
  void nc.closed().then((err) => {
    if (!err) return
    log.fatal({ err }, 'the bus is closed for good')
    process.exit(1)
  })
}

const endAtOnce = () => process.exit(0)

/** Until there is something to stop in order. The first process of a container ignores a signal that it does not handle. */
function endOnSignals() {
  if (process.pid === 1) for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, endAtOnce)
}

/** Everything is over by then, whatever hangs. */
const stopWithinMs = 24_000

/**
 * On SIGTERM or SIGINT closes each in the order given: first what brings work in, last what the work needs. A step that
 * fails is logged and does not hold the next; after 24 s the process ends as it is.
 */
export function stopInOrder({ log, probes, tracer }: Service, steps: Array<() => unknown>) {
  let stopping = false
  async function stop(signal: string) {
    if (stopping) return
    stopping = true
    log.info({ signal }, 'stopping')
    setTimeout(() => exit(log, 1, 'not stopped in time'), stopWithinMs).unref()
    probes.addCheck('stopping', () => false)
    for (const [n, step] of [...steps, () => tracer?.stop()].entries()) {
      try {
        await step()
      } catch (err) {
        log.error({ err, n }, 'stop')
      }
    }
    exit(log, 0, 'stopped')
  }
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.off(signal, endAtOnce)
    process.on(signal, () => void stop(signal))
  }
}

function exit(log: Logger, code: number, words: string) {
  log.info(words)
  log.flush(() => process.exit(code))
}
