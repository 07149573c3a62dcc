import type { DataServiceName } from '@app/deploy/migration-files.ts'
import { startProbes } from '@app/shared/service/probes.ts'
import { onTestFinished } from 'vitest'
import { createTestDatabase } from './database.ts'

/** A service's own migrated database and page of metrics, until the test is over. `told` answers the series that match, by name, as numbers. */
export async function startGauges(name: DataServiceName) {
  const { sql, drop } = await createTestDatabase(name)
  const probes = await startProbes(0, '127.0.0.1')
  onTestFinished(async () => {
    await probes.close()
    await drop()
  })
  async function told(series: RegExp): Promise<Record<string, number>> {
    const found = (await probes.metrics.metrics()).matchAll(series)
    return Object.fromEntries([...found].map(([, one, value]) => [one, Number(value)]))
  }
  return { sql, probes, told }
}
