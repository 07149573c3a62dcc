/** A piece of work under way. */
export interface Span {
  /** W3C trace context, for what it causes elsewhere. */
  traceparent: string
  /** `failure`: a word of ours, never a text from outside. */
  end: (failure?: string) => void
}

type Kind = 'server' | 'client' | 'producer' | 'consumer'

interface Beginning {
  kind: Kind
  /** The W3C trace context of what caused it. */
  parent: string
  attributes?: Record<string, string | number | undefined>
}

/** Makes spans for OpenTelemetry. */
export interface Tracer {
  /** Null when what caused it is not traced. */
  begin: (name: string, beginning: Beginning) => Span | null
  /** The first span of ours in a trace, when chance takes it: a client, whose trace it may be, can only ask for none. */
  beginTrace: (name: string, beginning: Omit<Beginning, 'parent'> & { parent?: string | undefined }) => Span | null
  /** Sends what is left, for 2 s at most. */
  stop: () => Promise<void>
}

const sampled = /^00-[0-9a-f]{32}-[0-9a-f]{16}-(?:[0-9a-f][13579bdf])$/

/** Whether a trace context asks for spans. */
export const isSampled = (traceparent: string): boolean => sampled.test(traceparent)

/** The same trace context, which asks for no spans. */
export const unsampled = (traceparent: string): string => traceparent.replace(/..$/, '00')

/** The id of a trace, by which lines of the log and spans are found together. */
export const traceIdOf = (traceparent: string | undefined): string | undefined =>
  traceparent ? traceparent.slice(3, 35) : undefined

interface Settings {
  OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined
  OTEL_TRACES_SAMPLER_ARG?: number | undefined
}

/** Undefined without an address to send spans to: then OpenTelemetry is not even loaded. */
export async function createTracer(service: string, env: Settings): Promise<Tracer | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_TRACES_SAMPLER_ARG: ratio = 1 } = env
  if (url === undefined) return undefined
  const { startOpenTelemetry } = await import('./open-telemetry.ts')
  return startOpenTelemetry({ service, url, ratio })
}
