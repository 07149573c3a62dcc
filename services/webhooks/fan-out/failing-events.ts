import { mostRecent } from '@app/shared/work/most-recent.ts'
import { type Sql, tookTooLong } from '@app/shared/database/database.ts'
import { recordFailure, retryMs } from '@app/shared/events/dead-events.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { App } from '../app.ts'
import { comesInOrder } from './comes-in-order.ts'
import { type EventRow, toEvent } from './record-events.ts'

/**
 * An event whose statements took too long is tried again after a pause, which doubles up to half a minute, as often as it takes: perhaps
 * something merely stood in its way, such as a process that was frozen. Its organization's next events wait behind it.
 */
const slowPausesMs = { first: 1_000, longest: 30_000 }

/** Organizations whose oldest event in the backlog could not be recorded: it is tried again after a pause. */
export interface FailingEvents {
  isPaused: (organizationId: string) => boolean
  /** Notes that it failed by itself; what is given up leaves the backlog. */
  failed: (row: EventRow, err: unknown) => Promise<void>
}

export function createFailingEvents({ sql, log }: Pick<App, 'sql' | 'log'>): FailingEvents {
  /** Monotonic times. */
  const pausedUntil = new Map<string, number>()
  /** By organization: its oldest event, if its statements took too long, and the last pause. */
  const slow = mostRecent<string, { eventId: string; pauseMs: number }>(10_000)

  function slowPauseOf({ head: { organization_id: organizationId, event_id: eventId } }: EventRow) {
    const before = slow.get(organizationId)
    const pauseMs =
      before?.eventId === eventId ? Math.min(before.pauseMs * 2, slowPausesMs.longest) : slowPausesMs.first
    slow.set(organizationId, { eventId, pauseMs })
    return pauseMs
  }

  return {
    isPaused(organizationId) {
      const isPaused = (pausedUntil.get(organizationId) ?? -Infinity) > performance.now()
      if (!isPaused) pausedUntil.delete(organizationId)
      return isPaused
    },
    async failed(row, err) {
      const { organization_id: organizationId, event_id: eventId } = row.head
      const { pauseMs, ...noted } = tookTooLong(err) ? { pauseMs: slowPauseOf(row) } : await note(sql, row, err)
      if (pauseMs > 0) pausedUntil.set(organizationId, performance.now() + pauseMs)
      log[pauseMs > 0 ? 'warn' : 'error'](
        { err, organization: organizationId, event: eventId, pauseMs, ...noted },
        'event',
      )
    },
  }
}

/** As what its consumer failed at. */
function note(sql: Sql, row: EventRow, err: unknown) {
  const event = { ...toEvent(row), id: `${row.head.organization_id}:${row.head.event_id}` }
  const { name } = comesInOrder(event) ? consumers.webhooksInOrder : consumers.webhooksFanOut
  return sql.begin(async (tx) => {
    const { failures, dead } = await recordFailure(tx, name, event, { err })
    if (dead)
      await tx`
        delete from event_backlog
        where organization_id = ${row.head.organization_id} and event_id = ${row.head.event_id}
      `
    return { consumer: name, failures, dead, pauseMs: dead ? 0 : retryMs(failures) }
  })
}
