import type { DataServiceName } from '@app/deploy/migration-files.ts'
import type { DataService } from '@app/shared/service/service.ts'
import { startWithDatabase } from '@app/shared/service/start.ts'
import { createTestDatabase } from './database.ts'
import { startTestNats } from './nats.ts'

export interface TestService extends DataService {
  databaseUrl: string
  natsUrl: string
  /** What was started on top of it (relay, consumers, serving) is stopped before. */
  close: () => Promise<void>
}

/** What a data service starts with: its own migrated database, its own nats-server, a silent log. */
export async function testService(name: DataServiceName): Promise<TestService> {
  const [database, nats] = await Promise.all([createTestDatabase(name), startTestNats()])
  const service = await startWithDatabase(name, {
    DATABASE_URL: database.url,
    NATS_URL: nats.url,
    NATS_REPLICAS: 1,
    LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'silent',
    PROBE_PORT: 0,
    PROBE_HOST: '127.0.0.1',
  })
  return {
    ...service,
    databaseUrl: database.url,
    natsUrl: nats.url,
    async close() {
      await Promise.all([service.nc.close(), service.eventBus.nc.close()])
      await service.sql.end({ timeout: 1 })
      await service.probes.close()
      await Promise.all([database.drop(), nats.stop()])
    },
  }
}
