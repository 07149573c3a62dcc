import { type Consuming, consumeBatches, type Delivered } from '@app/shared/consume.ts'
import { consumers } from '@app/shared/provision.ts'
import type { App } from '../app.ts'
import type { Payloads } from '../attempts/payloads.ts'
import { type EventRow, recordEvents, toRow } from './record-events.ts'

/** What one statement may hold and make: some 0.1 s of work, since it holds rows of the lanes. */
const statementLimits = { bytes: 8 * 1024 * 1024, events: 256, deliveries: 2_000 }

/**
 * Makes deliveries of events. Those with a line come by a consumer of their own, one unacked message over all instances:
 * two neighbours of the shared one would go to two instances, and could be recorded the other way round.
 */
export function startFanOut(app: App): Consuming {
  const fanOut = createFanOut(app)
  const shared = consumeBatches(app, consumers.webhooksFanOut.name, (events) =>
    fanOut(events.filter((event) => !comesInOrder(event))),
  )
  const inOrder = consumeBatches(app, consumers.webhooksInOrder.name, (events) => fanOut(events.filter(comesInOrder)))
  return {
    async stop() {
      await Promise.all([shared.stop(), inOrder.stop()])
    },
  }
}

const inOrderSubject = consumers.webhooksInOrder.subject.replace('>', '')

const comesInOrder = ({ subject, headers }: Delivered) =>
  headers.line !== undefined && subject.startsWith(inOrderSubject)

/** Events without a type are internal, and leave nothing behind. */
function createFanOut({ sql, attempts, payloads }: App) {
  /** Events a statement: fewer where an event goes to many subscriptions. */
  let most = statementLimits.events
  return async (events: Delivered[]): Promise<void> => {
    let waiting = events.flatMap((event) => toRow(event) ?? [])
    while (waiting.length > 0) {
      const rows = fitting(waiting.slice(0, most))
      try {
        const count = await recordEvents(sql, rows)
        if (count > 0) {
          for (const row of rows) remember(payloads, row)
          attempts.wake()
        }
        most = Math.ceil(Math.min(most * 2, statementLimits.events, (statementLimits.deliveries / count) * rows.length))
        waiting = waiting.slice(rows.length)
      } catch (err) {
        // Thousands of subscriptions to each of hundreds of events are more than a statement can do in its time.
        if (!isCancelled(err) || rows.length === 1) throw err
        most = Math.ceil(rows.length / 8)
      }
    }
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

const isCancelled = (err: unknown) => err instanceof Error && 'code' in err && err.code === '57014'

/** Mostly all of them: an event has at most 900 KiB. */
function fitting(rows: EventRow[]): EventRow[] {
  let bytes = 0
  const end = rows.findIndex((row, n) => (bytes += row.payload.length) > statementLimits.bytes && n > 0)
  return end === -1 ? rows : rows.slice(0, end)
}
