import { openDatabase } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { createPayloads } from '../attempts/payloads.ts'
import { startInstance } from './app.ts'

/** Another instance beside `first`, over the same database and stream, with connections of its own to Postgres. */
export function startSecondInstance(first: App, databaseUrl: string): { app: App; stop: () => Promise<void> } {
  const core = { ...first, sql: openDatabase(databaseUrl, 'webhooks'), payloads: createPayloads() }
  const { app, stop } = startInstance(core)
  return {
    app,
    async stop() {
      await stop()
      await core.sql.end({ timeout: 1 })
    },
  }
}
