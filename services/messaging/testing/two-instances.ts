import { ownSession } from '@app/shared/database/own-session.ts'
import { listenIn } from '@app/test/complaints.ts'
import { testService } from '@app/test/service.ts'
import { onTestFinished } from 'vitest'
import { testMessaging } from './app.ts'
import { startSecondInstance } from './second-instance.ts'

/** Two instances of a test, what they complain of, and a session of its own that nobody ends. */
export async function startTwoInstances() {
  const service = await testService('messaging')
  const { log, complaints } = listenIn(service.log)
  const base = await testMessaging({ ...service, log })
  onTestFinished(() => base.close())
  const second = startSecondInstance(base, service.databaseUrl)
  onTestFinished(() => second.stop())
  const sql = ownSession(service.sql, {})
  onTestFinished(() => sql.end())
  return { base, apps: [base, second.app], sql, complaints }
}
