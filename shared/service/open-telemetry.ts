import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Context } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { isSampled, type Span, type Tracer } from './tracing.ts'

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const

const stopWithinMs = 2_000

interface Destination {
  service: string
  /** OTLP over HTTP, such as `http://localhost:4318`. */
  url: string
  /** Share of the requests that are traced, of those whose client does not ask for none. */
  ratio: number
}

/**
 * Spans by OpenTelemetry, sent in batches. Nothing is patched and no context is kept behind the scenes: what belongs
 * together is linked by the trace context that questions, events and rows carry.
 */
export function startOpenTelemetry({ service, url, ratio }: Destination): Tracer {
  const exporter = new OTLPTraceExporter({ url: `${url.replace(/\/$/, '')}/v1/traces` })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': service }),
    // A process that is killed takes a second of spans with it, not five.
    spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: 1_000 })],
  })
  const tracer = provider.getTracer('messaging-service')

  function begin(name: string, kind: keyof typeof kinds, attributes: object, context: Context): Span | null {
    const span = tracer.startSpan(name, { kind: kinds[kind], attributes: { ...attributes } }, context)
    if (!span.isRecording()) return null
    const { traceId, spanId } = span.spanContext()
    return {
      traceparent: `00-${traceId}-${spanId}-01`,
      end(failure) {
        if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure })
        span.end()
      },
    }
  }

  return {
    begin: (name, { kind, parent, attributes = {} }) =>
      isSampled(parent) ? begin(name, kind, attributes, contextOf(parent)) : null,
    beginTrace(name, { kind, parent, attributes = {} }) {
      if (parent !== undefined && !isSampled(parent)) return null
      // Not by the trace's id, which a client chooses.
      if (Math.random() >= ratio) return null
      return begin(name, kind, attributes, parent === undefined ? ROOT_CONTEXT : contextOf(parent))
    },
    async stop() {
      const given = new Promise((resolve) => setTimeout(resolve, stopWithinMs).unref())
      await Promise.race([provider.shutdown().catch(() => {}), given])
    },
  }
}

function contextOf(traceparent: string): Context {
  const [, traceId = '', spanId = ''] = traceparent.split('-')
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 1, isRemote: true })
}
