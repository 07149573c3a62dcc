import { setTimeout as sleep } from 'node:timers/promises'
import type { JsMsg } from 'nats'
import { isDatabaseAway, tookTooLong } from '../database/database.ts'
import { type Delivered, type EventHeaders, idOf } from './events.ts'
import { recordFailure, retryMs } from './dead-events.ts'
import { beginBatch, lineOf } from '../metrics/batches.ts'
import type { HandledNotes } from './note-handled.ts'
import type { DataService } from '../service/service.ts'
import { eventHeader, idHeader } from './stream.ts'
import { giveBack } from './waiting-events.ts'

/** Thrown by a handler: this event will never succeed. */
export class Fatal extends Error {
  override readonly name = 'Fatal'
}

/** A batch whose statements take too long, or wait too long for a lock, is tried as often. */
const slowTries = 3
const longestPauseMs = 300_000

export interface Handling {
  app: DataService
  consumer: string
  notes: HandledNotes
  handle: (events: Delivered[]) => Promise<void>
}

/**
 * Handles a batch and acks it; when `handle` throws, it goes on as `consumeBatches` says. A batch that it is stopped before is given
 * back.
 */
export async function handleBatch(handling: Handling, batch: JsMsg[], stopped: () => boolean) {
  const { app, consumer, notes, handle } = handling
  for (let attempt = 0; !stopped(); attempt++) {
    let begun: ReturnType<typeof beginBatch> | undefined
    try {
      begun = beginBatch(app, consumer, batch.map(read))
      await handle(begun.events)
      for (const message of batch) message.ack()
      notes.add(batch)
      begun.end('handled')
      return
    } catch (err) {
      const isAway = isDatabaseAway(err)
      const waits = isAway && !(tookTooLong(err) && attempt + 1 >= slowTries)
      const isSplit = !waits && batch.length > 1
      begun?.end(isSplit ? 'split' : isAway ? 'waited' : 'failed')
      if (waits) {
        if (attempt % 20 === 0) app.log.warn({ err, consumer }, 'events wait for the database')
        await sleep(Math.min(100 * 2 ** attempt, 1_000))
      } else if (batch.length === 1 && batch[0]) {
        if (isAway) pause(app, consumer, batch[0], err)
        else await noteFailure(handling, batch[0], err)
        return
      } else {
        for (const message of batch) await handleBatch(handling, [message], stopped)
        return
      }
    }
  }
  giveBack(batch)
}

/** Throws what is fatal for an event whose headers are malformed, or name no event: it will never be read. */
function read(message: JsMsg): Delivered {
  const headers = headersOf(message)
  if (!headers || !isNamed(headers)) throw new Fatal(`malformed ${eventHeader} header`)
  return { subject: message.subject, headers, payload: message.data }
}

/** Null where they are malformed. */
function headersOf(message: JsMsg): EventHeaders | null {
  try {
    const headers: unknown = JSON.parse(message.headers?.get(eventHeader) || '{}')
    return typeof headers === 'object' ? (headers as EventHeaders | null) : null
  } catch {
    return null
  }
}

/** All without a name would be one event, of which the first alone is handled. */
const isNamed = ({ organization, event }: EventHeaders) => Boolean(organization && event)

/** Others are handled meanwhile. */
function pause({ log }: DataService, consumer: string, message: JsMsg, err: unknown) {
  const pauseMs = Math.min(1_000 * 2 ** (message.info.redeliveryCount - 1), longestPauseMs)
  log.error(
    { err, consumer, ...lineOf(read(message)), pauseMs },
    'the statements of an event took too long: it is tried again after a pause',
  )
  message.nak(pauseMs)
}

/** A failure that cannot be noted, since the database went away just now, does not count. */
async function noteFailure(handling: Handling, message: JsMsg, err: unknown) {
  try {
    await fail(handling, message, err)
  } catch (cause) {
    const { app, consumer } = handling
    app.log.error({ err, cause, consumer }, 'the failure of an event cannot be recorded')
    message.nak(1_000)
  }
}

async function fail({ app: { sql, log }, consumer, notes }: Handling, message: JsMsg, err: unknown) {
  const headers = headersOf(message) ?? ({} as EventHeaders)
  const id = message.headers?.get(idHeader) || (isNamed(headers) ? idOf(headers) : `seq:${message.seq}`)
  const event = { id, subject: message.subject, headers, payload: message.data }
  const { failures, dead } = await recordFailure(sql, consumer, event, { err, fatal: err instanceof Fatal })
  // Also the id of one whose headers say none.
  log[dead ? 'error' : 'warn']({ err, consumer, id, ...lineOf(event), failures, dead }, 'event')
  if (!dead) return message.nak(retryMs(failures))
  message.term()
  notes.add([message])
}
