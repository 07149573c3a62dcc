import type { Registry } from 'prom-client'
import type { Delivered } from '../events/events.ts'
import { rounded } from '../service/log.ts'
import type { Service } from '../service/service.ts'
import { type Span, traceIdOf } from '../service/tracing.ts'
import { counts, durations } from './registered.ts'

/** Failed: comes again, at most eight times; waited: for the database; split: each by itself from now on. */
type Outcome = 'handled' | 'failed' | 'waited' | 'split'

/** Events in work, each with its span's trace context in the place of its own. */
interface Batch {
  events: Delivered[]
  /** Measures the batch and tells of each event. */
  end: (outcome: Outcome) => void
}

export function beginBatch({ log, probes, tracer }: Service, consumer: string, delivered: Delivered[]): Batch {
  const startedAt = performance.now()
  const spans: Span[] = []
  const events = delivered.map((event) => {
    const { trace: parent = '' } = event.headers
    const span = tracer?.begin(event.subject, { kind: 'consumer', parent, attributes: { consumer } })
    if (!span) return event
    spans.push(span)
    return { ...event, headers: { ...event.headers, trace: span.traceparent } }
  })
  const { took, count } = metersOf(probes.metrics)
  return {
    events,
    end(outcome) {
      const durationMs = performance.now() - startedAt
      for (const span of spans) span.end(outcome === 'handled' ? undefined : outcome)
      took.observe({ consumer, outcome }, durationMs / 1_000)
      count.inc({ consumer, outcome }, events.length)
      if (outcome !== 'handled' || !log.isLevelEnabled('debug')) return
      const line = { consumer, batch: events.length, durationMs: rounded(durationMs) }
      for (const event of events) log.debug({ ...lineOf(event), ...line }, 'event')
    },
  }
}

/** What the line of an event says of it. */
export const lineOf = ({
  subject,
  headers: { organization, event, trace },
}: Pick<Delivered, 'subject' | 'headers'>) => ({
  subject,
  organization,
  event,
  trace: traceIdOf(trace),
})

const metersOf = (metrics: Registry) => ({
  took: durations(metrics, {
    name: 'svc_event_batch_seconds',
    help: 'Batches of events that were worked on, by consumer and outcome.',
    labelNames: ['consumer', 'outcome'],
  }),
  count: counts(metrics, {
    name: 'svc_events_consumed_total',
    help: 'Events that were worked on, by consumer and outcome; those that waited, failed or were split come again.',
    labelNames: ['consumer', 'outcome'],
  }),
})
