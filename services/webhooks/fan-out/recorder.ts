import { isCancelled } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import type { Payloads } from '../attempts/payloads.ts'
import { createReach } from './reach.ts'
import type { EventRow, Made } from './record-events.ts'
import { createShares } from './shares.ts'

/** Events that were recorded, and what was made of them. */
export interface Recorded {
  rows: EventRow[]
  made: Made[]
}

/** Records events, in this process: how many at a time, who has used up its share, and what follows of it. */
export interface Recorder {
  /** Gives rows to `run`, as many as fit into a statement; answers those that it has recorded. */
  recordFirst: (rows: EventRow[], run: (first: EventRow[]) => Promise<Recorded>) => Promise<EventRow[]>
  /** Whether the organization has made more deliveries than its share. */
  isUsedUp: (organizationId: string) => boolean
  /** Other work for an organization, as many deliveries as it costs; `since` is when it began. */
  charge: (organizationId: string, deliveries: number, since: number) => void
}

export function createRecorder({ attempts, payloads }: Pick<App, 'attempts' | 'payloads'>): Recorder {
  const reach = createReach()
  const shares = createShares()

  function note({ rows, made }: Recorded, since: number) {
    reach.learn(rows, made)
    for (const { organization_id, count } of made) shares.charge(organization_id, count, since)
    if (made.length === 0) return
    for (const row of rows) remember(payloads, row)
    attempts.wake()
  }

  return {
    isUsedUp: shares.isUsedUp,
    charge: shares.charge,
    async recordFirst(rows, run) {
      const first = reach.fitting(rows)
      if (first.length === 0) return []
      const since = performance.now()
      try {
        const recorded = await run(first)
        note(recorded, since)
        return recorded.rows
      } catch (err) {
        // Thousands of subscriptions to each of many events are more than a statement can do in its time.
        if (!isCancelled(err) || first.length === 1) throw err
        reach.areTooMany(first)
        return []
      }
    },
  }
}

/** In bytes of its own: those of the bus are a part of all that came with it. */
const remember = (
  payloads: Payloads,
  { head: { organization_id, event_id, type, source, trace }, payload }: EventRow,
) =>
  payloads.remember(
    { organizationId: organization_id, eventId: event_id },
    { type, source, body: Buffer.from(payload), trace },
  )
