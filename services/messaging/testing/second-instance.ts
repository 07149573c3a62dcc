import { openDatabase } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { createKnownConversations } from '../sends/known-conversations.ts'
import { createKnownTemplates } from '../templates/known-templates.ts'
import { startInstance } from './app.ts'

/** Another instance beside `first`, over the same database, with connections of its own to Postgres. */
export function startSecondInstance(first: App, databaseUrl: string): { app: App; stop: () => Promise<void> } {
  const sql = openDatabase(databaseUrl, 'messaging')
  const known = createKnownConversations({ wholeSince: () => -Infinity })
  const { app, stop } = startInstance({ ...first, sql, known, templates: createKnownTemplates(sql) })
  return {
    app,
    async stop() {
      await stop()
      await sql.end({ timeout: 1 })
    },
  }
}
