import type { DataServiceName } from '@app/deploy/migration-files.ts'
import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import { onTestFinished } from 'vitest'
import { listenIn } from './complaints.ts'
import { type TestService, testService } from './service.ts'

interface Closing {
  close: () => Promise<void>
}

/**
 * Two instances of a service for a test, over the same database, each with connections of its own; what they complain of; and a
 * session of its own that nobody ends.
 */
export async function startTwoInstances<First extends Closing, Second>(
  name: DataServiceName,
  startFirst: (service: TestService) => Promise<First>,
  startSecond: (first: First, sql: Sql) => { app: Second; stop: () => Promise<void> },
) {
  const service = await testService(name)
  const { log, complaints } = listenIn(service.log)
  const first = await startFirst({ ...service, log })
  onTestFinished(() => first.close())
  const secondSql = openDatabase(service.databaseUrl, name)
  const second = startSecond(first, secondSql)
  onTestFinished(async () => {
    await second.stop()
    await secondSql.end({ timeout: 1 })
  })
  const sql = ownSession(service.sql, {})
  onTestFinished(() => sql.end())
  return { first, apps: [first, second.app], sql, complaints }
}
