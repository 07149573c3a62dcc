import { isAwayFromAll } from '@app/shared/database/database.ts'
import { type Consuming, consumeBatches } from '@app/shared/events/consume.ts'
import type { Delivered } from '@app/shared/events/events.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { App } from '../app.ts'
import { type Backlog, startBacklog } from './backlog.ts'
import { comesInOrder } from './comes-in-order.ts'
import { type EventRow, recordEvents, toRow } from './record-events.ts'
import { createRecorder, type Recorded, type Recorder } from './recorder.ts'

/** What an event that is recorded alone costs, in deliveries: 2.5 ms, for which all others wait. */
const turnDeliveries = 100

/**
 * Makes deliveries of events. Those with a line come by a consumer of their own, one unacked message over all instances:
 * two neighbours of the shared one would go to two instances, and could be recorded the other way round.
 *
 * Both are first come, first served. So an organization that makes more deliveries than its share (`shares.ts`) goes
 * on in the backlog, in turns with others like it, and nobody else's events wait behind its own.
 */
export function startFanOut(app: App): Consuming {
  const recorder = createRecorder(app)
  const backlog = startBacklog(app, recorder)
  const parts: Parts = { app, recorder, backlog }

  async function takeBatch(events: Delivered[]) {
    const rows = events.filter((event) => !comesInOrder(event)).flatMap(rowOf)
    await fanOut(parts, rows, async (first) => ({ rows: first, made: await recordEvents(app.sql, first) }))
  }
  async function takeTurn(events: Delivered[]) {
    const rows = events.filter(comesInOrder).flatMap(rowOf)
    // What has no line comes by this consumer, too, and is the other one's.
    if (rows.length === 0) return
    const since = performance.now()
    try {
      // Another instance may have put earlier ones there a moment ago.
      const recorded = await fanOut(parts, rows, backlog.recordUnlessTheyWait)
      for (const { head } of recorded) recorder.charge(head.organization_id, turnDeliveries, since)
    } catch (err) {
      await putAside(parts, rows, err)
    }
  }

  const shared = consumeBatches(app, consumers.webhooksFanOut.name, takeBatch)
  // One comes at a time: to wait for more would hold up all.
  const inOrder = consumeBatches(app, consumers.webhooksInOrder.name, takeTurn, { spacingMs: 0 })
  return {
    async stop() {
      await Promise.all([shared.stop(), inOrder.stop()])
      await backlog.stop()
    },
  }
}

interface Parts {
  app: App
  recorder: Recorder
  backlog: Backlog
}

/**
 * While such events are tried again, everybody's next ones would wait behind them. So they go to the backlog, where only those of their own
 * organization wait, and are tried there.
 */
async function putAside({ app: { log }, backlog }: Parts, rows: EventRow[], err: unknown) {
  if (isAwayFromAll(err)) throw err
  log.warn(
    { err, events: rows.map(({ head }) => head.event_id) },
    'an event that cannot be fanned out goes on in the backlog',
  )
  await backlog.add(rows)
}

/** Events without a type are internal, and leave nothing behind. */
const rowOf = (event: Delivered) => toRow(event) ?? []

/** Of organizations that have used up their share, or of which events wait already, they go into the backlog; answers the others. */
async function fanOut(
  { recorder, backlog }: Parts,
  rows: EventRow[],
  record: (first: EventRow[]) => Promise<Recorded>,
) {
  const done: EventRow[] = []
  let left = rows
  while (left.length > 0) {
    const isLate = ({ head: { organization_id: id } }: EventRow) => backlog.known().has(id) || recorder.isUsedUp(id)
    const { late = [], now = [] } = Object.groupBy(left, (row) => (isLate(row) ? 'late' : 'now'))
    if (late.length > 0) await backlog.add(late)
    const recorded = await recorder.recordFirst(now, record)
    done.push(...recorded)
    const isRecorded = new Set(recorded)
    left = now.filter((row) => !isRecorded.has(row))
  }
  return done
}
