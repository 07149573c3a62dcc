import { keepPartitions } from '@app/shared/database/partitions.ts'
import postgres from 'postgres'
import type { Project } from './project.ts'
import { dayMs } from './ulid-sql.ts'

/** Of a day before, to seven days ahead: so many it makes. */
const daysMade = 9
const keepDays = 365
const tables = [
  { table: 'deliveries', by: 'wbd', days: 7, keepDays },
  { table: 'attempts', by: 'wbd', days: 7, keepDays },
] as const

/** Makes the partitions of webhooks' tables that there would be after so many days, as webhooks itself does. */
export async function makePastPartitions(project: Project, days: number): Promise<void> {
  const connection = { search_path: 'webhooks', role: 'svc_webhooks' }
  const sql = postgres(project.stack().postgres_url, { max: 1, onnotice: () => {}, connection })
  try {
    for (let back = days; back > 0; back -= daysMade) {
      for (const table of tables) await keepPartitions(sql, table, Date.now() - back * dayMs)
    }
  } finally {
    await sql.end()
  }
}
