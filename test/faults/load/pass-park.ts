import postgres from 'postgres'
import { expect, vi } from 'vitest'

/** Sees that the send waits a minute for its callback, and lets that pass but for a second. */
export async function passPark(databaseUrl: string, id: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1 })
  const look = async () => {
    const [parked] = await sql<{ lane: string; seconds: number }[]>`
      select lane, extract(epoch from parked_until - now())::float8 as seconds from messaging.sends
      where message_id = ${id} and parked_until is not null
    `
    expect(parked?.seconds).toBeGreaterThan(45)
    expect(parked?.seconds).toBeLessThanOrEqual(60)
    return parked?.lane ?? ''
  }
  try {
    const lane = await vi.waitFor(look, { timeout: 20_000, interval: 100 })
    await sql`update messaging.sends set parked_until = now() + interval '1 s' where message_id = ${id}`
    await sql`update messaging.send_lanes set due_at = now() + interval '1 s' where id = ${lane}`
  } finally {
    await sql.end({ timeout: 1 })
  }
}
