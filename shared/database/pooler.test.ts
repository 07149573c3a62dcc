import { createTestDatabase } from '@app/test/database.ts'
import { startPgBouncer } from '@app/test/pgbouncer.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createLog } from '../service/log.ts'
import { openDatabase } from './database.ts'
import { waitForMigrations } from './wait-for-migrations.ts'

/** What a login of ours asks for. */
const settings = Object.keys(openDatabase('postgres://someone@nowhere/test', 'webhooks').options.connection)

/** An address as an operator gives it: that of a test database asks for more time. */
const withoutSettings = (url: string) => url.replace(/\?.*/, '')

test.for([
  { poolMode: 'session', ignored: [], says: 'unsupported startup parameter' },
  { poolMode: 'session', ignored: settings, says: 'not those of its login' },
  { poolMode: 'transaction', ignored: [], says: 'unsupported startup parameter' },
  { poolMode: 'transaction', ignored: settings, says: 'not those of its login' },
] as const)(
  'a service behind PgBouncer ($poolMode, ignored: $ignored) does not begin, and says why',
  async ({ poolMode, ignored, says }, { skip }) => {
    const database = await createTestDatabase('webhooks')
    onTestFinished(database.drop)
    const pooler = await startPgBouncer(withoutSettings(database.url), { poolMode, ignored: [...ignored] })
    if (!pooler) return skip('pgbouncer (apt-get install pgbouncer) is missing.')
    onTestFinished(pooler.stop)
    const log = createLog('test', 'silent')
    const raise = (line: unknown) => {
      throw (line as { err: Error }).err
    }
    vi.spyOn(log, 'warn').mockImplementation(raise)
    vi.spyOn(log, 'error').mockImplementation(raise)
    const sql = openDatabase(pooler.url, 'webhooks', { max: 1 })
    onTestFinished(() => sql.end({ timeout: 1 }))
    await expect(waitForMigrations(sql, { log, name: 'webhooks' })).rejects.toThrow(says)
    // Past the pooler it begins.
    await waitForMigrations(database.sql, { log, name: 'webhooks' })
  },
)
