import type { NatsConnection } from 'nats'
import type { Logger } from 'pino'
import { connectBus } from '../bus/bus.ts'
import { openDatabase } from '../database/database.ts'
import { waitForMigrations } from '../database/wait-for-migrations.ts'
import { readDatabase } from '../metrics/database-readings.ts'
import { timeQuestions } from '../metrics/questions.ts'
import { type CommonEnv, listening } from './environment.ts'
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
