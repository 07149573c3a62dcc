import type { NatsConnection } from 'nats'
import type { Logger } from 'pino'
import { type Bus, connectBus, identityOf } from '../bus/bus.ts'
import { openDatabase } from '../database/database.ts'
import { waitForMigrations } from '../database/wait-for-migrations.ts'
import { stayWithMajority } from '../events/majority.ts'
import { readDatabase } from '../metrics/database-readings.ts'
import { timeQuestions } from '../metrics/questions.ts'
import { admitted, type CommonEnv, listening } from './environment.ts'
import { keepHeapSmall } from './heap.ts'
import { createLog } from './log.ts'
import { startProbes } from './probes.ts'
import type { DataService, Service, ServiceName } from './service.ts'
import { endOnSignals } from './stop.ts'
import { createTracer } from './tracing.ts'

/** Probes first (alive, not ready), then the bus, for which it waits as long as it takes. */
export async function start(name: ServiceName, env: CommonEnv): Promise<Service> {
  keepHeapSmall()
  endOnSignals()
  const log = createLog(name, env.LOG_LEVEL)
  const probes = await listening('PROBE_HOST and PROBE_PORT', startProbes(env.PROBE_PORT, env.PROBE_HOST))
  probes.metrics.setDefaultLabels({ service: name })
  for (const check of ['starting', 'nats']) probes.addCheck(check, () => false)
  const tracer = await createTracer(name, env)
  const bus = await connect(name, env, log)
  probes.addCheck('nats', bus.isConnected)
  const request = timeQuestions(bus.request, probes.metrics)
  return { name, log, probes, tracer, streamReplicas: env.NATS_REPLICAS, ...bus, request }
}

/** As `start`, and the service's schema, for which it waits too. */
export async function startWithDatabase(
  name: ServiceName,
  env: CommonEnv & { DATABASE_URL: string },
): Promise<DataService> {
  const service = await start(name, env)
  const eventBus = await connect(name, env, service.log)
  const sql = openDatabase(env.DATABASE_URL, name)
  service.probes.addCheck('postgres', async () => (await sql`select 1`).length === 1)
  await waitForMigrations(sql, service)
  readDatabase({ ...service, sql })
  return { ...service, sql, eventBus }
}

/** The service answers from now on: the bus knows all that it serves, so that whoever asks once it is ready finds it. */
export async function markReady({ nc, probes, log }: Service): Promise<void> {
  // Cut off meanwhile, the bus is told anew when it is back, and until then another check fails.
  await nc.flush().catch(() => {})
  probes.addCheck('starting', () => true)
  log.info({ probes: probes.url }, 'ready')
}

async function connect(name: ServiceName, env: CommonEnv, log: Logger): Promise<Bus> {
  const bus = await admitted(name, connectBus(name, env.NATS_URL, log, { nkeySeed: env.NATS_NKEY_SEED }))
  exitWhenClosed(bus.nc, log)
  const urls = env.NATS_URL.split(',')
  if (env.NATS_REPLICAS > 1 && urls.length > 1) {
    stayWithMajority(bus.nc, urls, identityOf(name, env.NATS_NKEY_SEED), log)
  }
  return bus
}

function exitWhenClosed(nc: NatsConnection, log: Logger) {
  void nc.closed().then((err) => {
    if (!err) return
    log.fatal({ err }, 'the connection to nats-server is closed for good')
    process.exit(1)
  })
}
