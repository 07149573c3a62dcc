import { setTimeout as sleep } from 'node:timers/promises'
import type { ConsumerMessages, JsMsg, Subscription } from 'nats'
import type { z } from 'zod'
import type { Event } from '../api/contract.ts'
import type { TransactionSql } from '../database/database.ts'
import { type Delivered, type EventHeaders, idOf } from './events.ts'
import { Fatal, handleBatch, type Handling } from './handle-batch.ts'
import { readConsumerLag } from '../metrics/consumer-lag.ts'
import { isGap } from './lost-tail.ts'
import { tellMissedEvents } from './missed-events.ts'
import { createHandledNotes } from './note-handled.ts'
import { ackWaitMs, askAgainMs, restoreConsumer } from './provision.ts'
import type { DataService } from '../service/service.ts'
import { streamName } from './stream.ts'
import { createWaitingEvents } from './waiting-events.ts'

export interface Consuming {
  stop: () => Promise<void>
}

const batchRows = 256
const pullMs = 5_000

/**
 * Hands the events of a durable consumer to `handle` in batches, one batch at a time, and acks a batch after `handle` returns. An event
 * comes at least once, so `handle` must be idempotent. When `handle` throws:
 * - The database is away: the batch is held and tried again. It does not count as a failure.
 * - Its statements take too long, or wait too long for a lock: the batch is tried three times, then event by event. An event that takes
 *   too long alone is tried again after a pause, which doubles up to five minutes. It does not count as a failure.
 * - Anything else: its events are handled one by one. An event that fails alone eight times, or is malformed, stays in
 *   `dead_events` and does not come again.
 *
 * Batches begin `spacingMs` apart at least, unless a full batch waits: fewer, larger batches cost less. What was handled is noted
 * together, `noteAfterMs` later (note-handled.ts).
 */
export function consumeBatches(
  app: DataService,
  consumer: string,
  handle: (events: Delivered[]) => Promise<void>,
  { spacingMs = 5, noteAfterMs }: { spacingMs?: number; noteAfterMs?: number } = {},
): Consuming {
  const waiting = createWaitingEvents()
  const notes = createHandledNotes(app, consumer, noteAfterMs)
  let stopped = false
  let messages: ConsumerMessages | undefined
  readConsumerLag(app, consumer)

  const pump = pumpOf({ app, consumer, notes, handle }, waiting, () => stopped, spacingMs)

  async function pull() {
    const source = await app.eventBus.nc.jetstream({ timeout: askAgainMs }).consumers.get(streamName, consumer)
    const info = await source.info(true)
    await tellMissedEvents(app, info)
    waiting.keepAlive((info.config.ack_wait ?? ackWaitMs * 1e6) / 1e6)
    messages = await source.consume({
      max_messages: 512,
      // A pull that is answered by nobody (the store is lost) is noticed after half of it.
      expires: pullMs,
      callback: withoutGaps((message) => {
        waiting.add(message)
        pump.wake()
      }),
    })
    // Told to stop meanwhile: nobody else closes it.
    if (stopped) await drain(messages)
    await lost(messages)
  }

  const loop = (async () => {
    while (!stopped) {
      try {
        await pull()
      } catch (err) {
        if (!stopped) app.log.warn({ err, consumer }, 'consumer')
      }
      if (stopped) return
      await restore(app, consumer)
    }
  })()

  return {
    async stop() {
      stopped = true
      if (messages) await drain(messages)
      await pump.idle()
      await loop
      waiting.giveBack()
      await notes.stop()
    },
  }
}

/**
 * Takes in what the server has sent before it knows that no more is wanted, so that it can be given back: the client's own
 * `close` forgets it at once (nats 2.29), and nobody would get it before the time for an ack is over.
 */
async function drain(messages: ConsumerMessages) {
  const { sub } = messages as ConsumerMessages & { sub: Subscription }
  // Closed already, it has nothing to give back.
  await sub.drain().catch(() => {})
  await messages.close()
}

/** An event that only takes a number is nobody's work. */
const withoutGaps = (take: (message: JsMsg) => void) => (message: JsMsg) =>
  isGap(message.subject) ? message.ack() : take(message)

/** The consumer or its stream is gone (a lost store), perhaps: made anew; the relays publish again. */
async function restore({ eventBus, streamReplicas }: DataService, consumer: string) {
  await sleep(250)
  if (eventBus.isConnected()) await restoreConsumer(eventBus.nc, consumer, streamReplicas).catch(() => {})
}

/** Handles what waits, in batches. */
function pumpOf(
  handling: Handling,
  waiting: ReturnType<typeof createWaitingEvents>,
  stopped: () => boolean,
  spacingMs: number,
) {
  return createPump(async () => {
    while (waiting.count() > 0 && !stopped()) {
      const spaced = spacingMs > 0 && sleep(spacingMs)
      await waiting.handleNext(batchRows, (batch) => handleBatch(handling, batch, stopped))
      if (waiting.count() < batchRows) await spaced
    }
  })
}

/** Runs the work, one run at a time: woken once for all that comes in one turn of the event loop. */
function createPump(work: () => Promise<void>) {
  let woken: NodeJS.Immediate | undefined
  let pumping: Promise<void> | undefined
  const pump = () => {
    woken = undefined
    pumping = work().finally(() => {
      pumping = undefined
    })
  }
  return {
    wake: () => {
      // Work that runs takes what comes without being told.
      if (!woken && !pumping) woken = setImmediate(pump)
    },
    idle: () => pumping,
  }
}

/** Resolves when the consumer is closed, or is not there any more. */
async function lost(messages: ConsumerMessages) {
  const gone = (async () => {
    for await (const { type } of await messages.status()) {
      if (['consumer_deleted', 'consumer_not_found', 'stream_not_found', 'heartbeats_missed'].includes(type))
        return messages.stop()
    }
  })()
  await Promise.race([messages.closed(), gone])
}

/** Work after the commit, at most once: when it fails or the process dies, it is not repeated. */
type Afterwards = () => Promise<unknown>

/**
 * Hands one kind of event to `handle`, each in a transaction of its own. Its effect in `tx` happens once per event id, however often the
 * event comes: the id is recorded in the same transaction. `handle` may return work for after the commit. Failures are as in
 * `consumeBatches`; data that does not fit the contract is fatal.
 */
export function consume<E extends Event>(
  app: DataService,
  consumer: string,
  contract: E,
  handle: (tx: TransactionSql, data: z.output<E['data']>, headers: EventHeaders) => Promise<void | Afterwards>,
): Consuming {
  return consumeBatches(app, consumer, async (events) => {
    for (const { headers, payload } of events) {
      const parsed = contract.data.safeParse(JSON.parse(Buffer.from(payload).toString()))
      if (!parsed.success) throw new Fatal(`${contract.subject} does not fit its contract`, { cause: parsed.error })
      const afterwards = await app.sql.begin(async (tx) => {
        const first = await tx`
          insert into handled_events (consumer, event_id) values (${consumer}, ${idOf(headers)})
          on conflict do nothing returning consumer
        `
        return first.length === 1 ? handle(tx, parsed.data as z.output<E['data']>, headers) : undefined
      })
      await afterwards?.().catch((err: unknown) => app.log.warn({ err, consumer }, 'the work after an event failed'))
    }
  })
}
