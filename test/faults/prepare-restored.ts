import { migrate } from '@app/deploy/migrate.ts'
import { provisionAt } from '@app/deploy/provision.ts'
import { withBus } from '@app/deploy/stack/bus.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { expect } from 'vitest'
import { readPage } from '../docs/pages.ts'
import { asSuperuser } from './postgres-server.ts'

/**
 * Steps 3 to 5 of the page about backup and restore, with its statement; the services are stopped, the database is that of
 * an earlier moment. Answers how many sends waited.
 */
export async function prepareRestored({ databaseUrl, natsUrl }: { databaseUrl: string; natsUrl: string }) {
  await withBus({ natsUrl }, async ({ nc }) => (await nc.jetstreamManager()).streams.delete(streamName))
  expect(await migrate(databaseUrl)).toEqual([])
  await provisionAt({ natsUrl })
  const { snippets } = readPage('docs/operations/backup-and-restore.md')
  const [statement = ''] = snippets.flatMap(({ language, code }) => (language === 'sql' ? code : []))
  return asSuperuser(databaseUrl, async (sql) => (await sql.unsafe(statement)).count)
}
