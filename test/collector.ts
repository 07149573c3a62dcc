import { createServer } from 'node:http'
import { z } from 'zod'
import { listen } from './listen.ts'
import { wholeBody } from './whole-body.ts'

export interface SpanSeen {
  service: string
  name: string
  spanId: string
  parentSpanId: string
  attributes: Record<string, unknown>
  /** Why it failed. */
  status: string | undefined
}

const Attributes = z
  .array(z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) }))
  .default([])
  .transform((all) => Object.fromEntries(all.map(({ key, value }) => [key, Object.values(value)[0]])))

const Span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().default(''),
  name: z.string(),
  attributes: Attributes,
  status: z
    .object({ message: z.string().optional() })
    .default({})
    .transform(({ message }) => message),
})

const Export = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: Attributes }),
      scopeSpans: z.array(z.object({ spans: z.array(Span) })),
    }),
  ),
})

export interface Collector {
  url: string
  /** The spans of a trace. */
  of: (traceId: string) => SpanSeen[]
  /** All that was taken, as JSON. */
  text: () => string
  close: () => void
}

/** Takes spans as an OpenTelemetry collector does: OTLP over HTTP, in JSON. */
export async function startCollector(): Promise<Collector> {
  const traces = new Map<string, SpanSeen[]>()
  const server = createServer((request, response) => {
    void wholeBody(request).then((body) => {
      for (const { resource, scopeSpans } of Export.parse(JSON.parse(body.toString())).resourceSpans) {
        const service = String(resource.attributes['service.name'])
        for (const { traceId, ...span } of scopeSpans.flatMap(({ spans }) => spans)) {
          traces.set(traceId, [...(traces.get(traceId) ?? []), { service, ...span }])
        }
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    of: (traceId) => traces.get(traceId) ?? [],
    text: () => JSON.stringify([...traces]),
    close: () => server.close().closeAllConnections(),
  }
}
