import { openDatabase } from '@app/shared/database/database.ts'
import { type App, createQueryTurns } from '../app.ts'
import { startAttempts } from '../attempts/attempts.ts'
import { createPayloads } from '../attempts/payloads.ts'
import { startFanOut } from '../fan-out/fan-out.ts'
import { startReplays } from '../replays/enqueue-replays.ts'

interface Instance extends App {
  stop: () => Promise<void>
}

/** Another instance beside `first`, over the same database and stream, with connections of its own to Postgres. */
export function startSecondInstance(first: App, databaseUrl: string): Instance {
  const core = { ...first, sql: openDatabase(databaseUrl, 'webhooks'), payloads: createPayloads() }
  const attempts = startAttempts(core)
  const app: App = { ...core, attempts, replays: startReplays(core, attempts.wake), ...createQueryTurns() }
  const fanOut = startFanOut(app)
  return {
    ...app,
    async stop() {
      await fanOut.stop()
      await app.replays.stop()
      await attempts.stop()
      await core.sql.end({ timeout: 1 })
    },
  }
}
