import { setTimeout as sleep } from 'node:timers/promises'
import type { Project } from './project.ts'
import { until } from './until.ts'

const looks = 5
const timeoutMs = 120_000

/** Waits until no statement runs any more: a load that ends leaves its last questions behind, and slow ones for long. */
export async function untilIdle(project: Project): Promise<void> {
  const isQuiet = async () => {
    for (let look = 0; look < looks; look++) {
      if ((await activeStatements(project)) > 0) return false
      await sleep(20)
    }
    return true
  }
  await until('no statement runs', isQuiet, timeoutMs, 50)
}

async function activeStatements(project: Project) {
  const [row] = await project.sql()<{ count: number }[]>`
    select count(*)::int as count from pg_stat_activity
    where state = 'active' and backend_type = 'client backend' and pid <> pg_backend_pid()
  `
  return row?.count ?? 0
}
