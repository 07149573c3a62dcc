import type { DataServiceName } from '@app/deploy/migration-files.ts'
import type { DataService } from '@app/shared/service/service.ts'
import { startWithDatabase } from '@app/shared/service/start.ts'
import { type BusStepProxy, startBusStepProxy } from './bus-step-proxy.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { startTestNats, type TestNats } from './nats.ts'
import { startStepProxy, type StepProxy } from './step-proxy.ts'

export interface TestService extends DataService {
  databaseUrl: string
  natsUrl: string
  nats: TestNats
  /** What was started on top of it (relay, consumers, serving) is stopped before. */
  close: () => Promise<void>
}

export interface SteppedService extends TestService {
  steps: StepProxy
}

export interface BusSteppedService extends TestService {
  busSteps: BusStepProxy
}

/** What a data service starts with: its own migrated database, its own nats-server, a silent log. */
export async function testService(name: DataServiceName): Promise<TestService> {
  return start(name, await createTestDatabase(name))
}

/** The same, but it reaches its database through a proxy that can break off at each step; `databaseUrl` goes past it. */
export async function steppedService(name: DataServiceName): Promise<SteppedService> {
  const database = await createTestDatabase(name)
  const steps = await startStepProxy(database.url)
  const service = await start(name, database, steps.url)
  const close = async () => {
    await service.close()
    steps.close()
  }
  return { ...service, steps, close }
}

/** The same, but it reaches its nats-server through a proxy that can lose each message; `natsUrl` goes past it. */
export async function busSteppedService(name: DataServiceName): Promise<BusSteppedService> {
  const nats = await startTestNats()
  const busSteps = await startBusStepProxy(nats.url)
  const database = await createTestDatabase(name)
  const service = await start(name, database, database.url, { nats, natsUrl: busSteps.url })
  const close = async () => {
    await service.close()
    busSteps.close()
  }
  return { ...service, busSteps, close }
}

async function start(
  name: DataServiceName,
  database: TestDatabase,
  databaseUrl = database.url,
  through?: { nats: TestNats; natsUrl: string },
): Promise<TestService> {
  const nats = through?.nats ?? (await startTestNats())
  const service = await startWithDatabase(name, {
    DATABASE_URL: databaseUrl,
    NATS_URL: through?.natsUrl ?? nats.url,
    NATS_REPLICAS: 1,
    LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'silent',
    PROBE_PORT: 0,
    PROBE_HOST: '127.0.0.1',
  })
  return {
    ...service,
    databaseUrl: database.url,
    natsUrl: nats.url,
    nats,
    async close() {
      await Promise.all([service.nc.close(), service.eventBus.nc.close()])
      await service.sql.end({ timeout: 1 })
      await service.probes.close()
      await Promise.all([database.drop(), nats.stop()])
    },
  }
}
