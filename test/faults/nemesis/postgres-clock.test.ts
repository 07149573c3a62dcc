import { join } from 'node:path'
import pg from 'postgres'
import { expect, inject, onTestFinished, test } from 'vitest'
import { startPrivateServers } from '../../servers.ts'
import { offerPostgresClock } from './postgres-clock.ts'

test('all sessions of Postgres have the same wrong time, and then the right one', async ({ skip }) => {
  const folder = inject('runFolder')
  const dataDir = join(folder, 'clocked')
  const clock = offerPostgresClock(join(folder, 'postgres-clock'), dataDir)
  if (!clock) return skip('libfaketime is not installed.')
  const servers = await startPrivateServers(dataDir, ['postgres'])
  const sql = pg(servers.postgresUrl, { max: 4, onnotice: () => {} })
  onTestFinished(async () => {
    await sql.end()
    await servers.stop()
  })
  for (const byMs of [90_000, -90_000, 0]) {
    clock.skew(byMs)
    const times = await Promise.all([1, 2, 3, 4].map(() => sql<{ now: Date }[]>`select now(), pg_sleep(0.05)`))
    const wrongBy = times.map(([row]) => Math.round((Number(row?.now) - Date.now() - byMs) / 2_000) + 0)
    expect(wrongBy).toEqual([0, 0, 0, 0])
  }
})
