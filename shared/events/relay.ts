import { ErrorCode, headers, type MsgHdrs, NatsError } from 'nats'
import { faultOf } from '../bus/bus.ts'
import type { EventHeaders } from './events.ts'
import { startLoop } from '../work/loop.ts'
import { counts } from '../metrics/registered.ts'
import { readStreamCopies } from '../metrics/stream-copies.ts'
import { openOutbox, type Outbox, type Published, type WaitingEvent } from './outbox.ts'
import { redrive, refillLostStream } from './refill.ts'
import type { DataService } from '../service/service.ts'
import { type StreamRoom, watchStreamRoom } from './stream-room.ts'
import { eventHeader, idHeader, isIdWithoutPlace, outboxHeader, readPublishAck, streamName } from './stream.ts'

/** Rows a pass: 256 outstanding publishes are four times as fast as one by one. */
const batchRows = 256
const pollMs = 500
/** Under load, passes gather for that long. */
const spacingMs = 5
const lockRetryMs = 10
const failureRetryMs = 250
const ackTimeoutMs = 2_000
/** How long a turn goes on with the next events of a line. With the last answer it is well within what a turn may take. */
const lineMs = 2_000
/** How soon a stream that had no room is asked again. */
const heldMs = 1_000

export interface Relay {
  /** Makes the relay publish committed events now, not at its next poll; call it after every commit that emitted. */
  wake: () => void
  /** Publishes the events recorded since then again, and returns their number; consumers drop those that they have handled. */
  redrive: (since: Date) => Promise<number>
  stop: () => Promise<void>
}

type Result = { published: number } | { refused: string } | { failed: unknown } | { held: true }

/**
 * Publishes the outbox to JetStream, in order; one instance of a service at a time. An event is published at least once, always with
 * the same id. One that fails is retried after others, but never after a later event of its line.
 *
 * A stream that is younger or shorter than the remembered one lost events: the last 72 h are published again. Another service may
 * have created it, so that nothing fails here: the stream's time of creation is checked all the time.
 */
export function startRelay(app: DataService): Relay {
  readStreamCopies(app)
  // Told as zero before the first: Prometheus sees no increase where a series begins with one.
  countOf(app)
  const outbox = openOutbox(app)
  /** When the stream was made that lacks nothing; undefined while nobody knows. */
  let checked: string | undefined
  const room = watchStreamRoom(app, (created) => {
    if (created !== checked) checked = undefined
  })

  async function turn(isPoll = false) {
    if (!app.eventBus.isConnected()) return pollMs
    if (checked === undefined) {
      checked = await refillLostStream(app).catch(waitsForLeader)
      outbox.lookAtAll()
    }
    if (checked === undefined) return failureRetryMs
    const holder = await room.heldBy()
    if (holder !== null) return heldMs
    if (isPoll && !(await outbox.isWaiting())) return pollMs
    const { more, retryMs } = await pass(app, outbox, room, () => checked !== undefined)
    if (retryMs >= failureRetryMs) checked = undefined
    return retryMs || (more ? 0 : pollMs)
  }

  /** The servers are electing, or starting: that passes. */
  function waitsForLeader(err: unknown) {
    if (!(err instanceof NatsError)) throw err
    app.log.warn({ err }, 'relay')
    return undefined
  }

  const loop = startLoop(app.log, 'relay', turn, { spacingMs })
  app.eventBus.onReconnect(() => {
    checked = undefined
    loop.wake()
  })
  loop.wake()
  return {
    wake: loop.wake,
    redrive: (since) =>
      redrive(app, since).finally(() => {
        outbox.lookAtAll()
        loop.wake()
      }),
    async stop() {
      await loop.stop()
      // What was committed last goes out now; if it cannot, another instance or the next start publishes it.
      await turn().catch((err: unknown) => app.log.warn({ err }, 'relay'))
      await outbox.close()
    },
  }
}

/**
 * An event of a line would stand before those that a stream lost a moment ago: so the stream is looked at before each that has
 * some, not every few seconds. When it is another one, or cannot be seen, nothing goes.
 */
async function pass(app: DataService, outbox: Outbox, room: StreamRoom, isSame: () => boolean) {
  let [hasFailed, areLeft] = [false, false]
  const count = await outbox.turn(batchRows, async (events) => {
    const isSeen = events.every((event) => lineOf(event) === undefined) || (await room.look())
    const results = isSeen && isSame() ? await publishAll(app, events) : events.map((): Result => ({ held: true }))
    room.filled(events.reduce((sum, { payload, headers: about }) => sum + payload.length + about.length, 0))
    const { failures, waiting, ...published } = tell(app, events, results)
    hasFailed = failures > 0 || !isSeen
    areLeft = waiting > 0
    return published
  })
  if (count === null) return { more: true, retryMs: lockRetryMs }
  return { more: areLeft || count === batchRows, retryMs: hasFailed ? failureRetryMs : 0 }
}

/** At once, but those of a line one after the other: the stream turns away one event and takes the next. */
function publishAll(app: DataService, events: WaitingEvent[]): Promise<Result[]> {
  const endsAt = performance.now() + lineMs
  const ends = new Map<string, Promise<Result>>()

  async function publishAfter(before: Promise<Result>, event: WaitingEvent): Promise<Result> {
    const result = await before
    const isThrough = 'published' in result || 'refused' in result
    return isThrough && performance.now() < endsAt ? publish(app, event) : { held: true }
  }

  const results = events.map((event) => {
    const line = lineOf(event)
    if (line === undefined) return publish(app, event)
    const before = ends.get(line)
    const result = before ? publishAfter(before, event) : publish(app, event)
    ends.set(line, result)
    return result
  })
  return Promise.all(results)
}

/** Few have a line: the headers of the others are not parsed. */
const lineOf = ({ headers: about }: WaitingEvent) =>
  about.includes('"line"') ? (JSON.parse(about) as EventHeaders).line : undefined

interface Told extends Published {
  failures: number
  /** How many go again: those that failed, and those that were held. */
  waiting: number
}

/** Counts and logs what became of the events. */
function tell(app: DataService, events: WaitingEvent[], results: Result[]): Told {
  const published: string[] = []
  const refused: Published['refused'] = []
  let last: Published['last']
  const failed: unknown[] = []
  for (const [n, event] of events.entries()) {
    const result = results[n]
    if (!result) throw new Error('an event without a result')
    if ('published' in result) {
      published.push(event.seq)
      if (!last || result.published > last.seq) last = { seq: result.published, subject: event.subject }
    } else if ('refused' in result) {
      const { seq, id, subject, payload } = event
      const line = { seq, id, subject, bytes: Buffer.byteLength(payload), refused: result.refused }
      app.log.error(line, 'an event cannot be published and was set aside')
      refused.push({ seq: event.seq, why: result.refused })
    } else if ('failed' in result) failed.push(result.failed)
  }
  const waiting = events.length - published.length - refused.length
  const failures = failed.length
  countOf(app).inc({ outcome: 'published' }, published.length)
  countOf(app).inc({ outcome: 'refused' }, refused.length)
  countOf(app).inc({ outcome: 'failed' }, failures)
  if (failures > 0) app.log.warn({ err: failed[0], waiting }, 'relay')
  return { published, refused, last, failures, waiting }
}

const countOf = ({ probes }: DataService) =>
  counts(probes.metrics, {
    name: 'svc_outbox_events_total',
    help: 'Publishes of committed events: published, failed (tried again), or refused by the client for good and set aside.',
    labelNames: ['outcome'],
    from: [['published'], ['failed'], ['refused']],
  })

async function publish(app: DataService, event: WaitingEvent): Promise<Result> {
  if (!app.tracer) return put(app, event, event.headers)
  const headers = JSON.parse(event.headers) as EventHeaders
  const span = app.tracer.begin(event.subject, { kind: 'producer', parent: headers.trace ?? '' })
  const result = await put(app, event, span ? JSON.stringify({ ...headers, trace: span.traceparent }) : event.headers)
  span?.end('published' in result ? undefined : 'not published')
  return result
}

async function put({ eventBus }: DataService, event: WaitingEvent, eventHeaders: string): Promise<Result> {
  try {
    const carrier = headers()
    carrier.set('Nats-Expected-Stream', streamName)
    carrier.set(eventHeader, eventHeaders)
    carrier.set(idHeader, event.id)
    carrier.set(outboxHeader, event.seq)
    let ack = await ask(eventBus, event, carrier)
    if (isIdWithoutPlace(ack)) {
      // Should the first come after all, consumers know it by its headers.
      carrier.delete(idHeader)
      ack = await ask(eventBus, event, carrier)
    }
    const { seq, error } = ack
    return error || !seq ? { failed: new Error(error?.description ?? 'refused') } : { published: seq }
  } catch (err) {
    const code = err instanceof NatsError ? err.code : ''
    const isTooLarge = code === ErrorCode.MaxPayloadExceeded && faultOf(eventBus.nc) === null
    const never = isTooLarge || code === ErrorCode.BadSubject || code === ErrorCode.BadHeader
    return never ? { refused: code } : { failed: err }
  }
}

async function ask({ request }: DataService['eventBus'], { subject, payload }: WaitingEvent, carrier: MsgHdrs) {
  const { data } = await request(subject, Buffer.from(payload), carrier, ackTimeoutMs)
  return readPublishAck(data)
}
