import { mendText } from '../api/json.ts'
import type { Sql, TransactionSql } from '../database/database.ts'
import type { Delivered } from './events.ts'

const maxFailures = 8

/** How long an event waits that has failed so often: a minute and a half, over all its tries. */
export const retryMs = (failures: number): number => Math.min(1_000 * 2 ** (failures - 1), 30_000)

/**
 * Counts that a consumer failed at an event by itself, which is what it is given for: `dead` from the eighth time on, or at once
 * where it is `fatal`. It stays in `dead_events`, and is not to be tried again.
 */
export async function recordFailure(
  sql: Sql | TransactionSql,
  consumer: string,
  { id, subject, headers, payload }: Delivered & { id: string },
  { err, fatal = false }: { err: unknown; fatal?: boolean },
): Promise<{ failures: number; dead: boolean }> {
  // Either may hold text that Postgres cannot.
  const [about, text] = [mendText(headers), mendText(err instanceof Error ? err.message : String(err)) as string]
  const [row] = await sql<{ failures: number; dead: boolean }[]>`
    insert into dead_events as d (consumer, event_id, subject, headers, payload, failures, dead, last_error)
    values (${consumer}, ${id}, ${subject}, ${JSON.stringify(about)}::text::jsonb, ${payload}, 1, ${fatal}, ${text})
    on conflict (consumer, event_id) do update set failures = d.failures + 1, last_error = excluded.last_error,
      dead = excluded.dead or d.failures + 1 >= ${maxFailures}, updated_at = now()
    returning failures, dead
  `
  return row ?? { failures: 1, dead: false }
}
