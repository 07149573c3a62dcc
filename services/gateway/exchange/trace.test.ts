import { randomBytes } from 'node:crypto'
import { createTracer } from '@app/shared/service/tracing.ts'
import { type Collector, startCollector } from '@app/test/collector.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { traceparentOf, traceRequest } from './trace.ts'

const [trace, span] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
const own = /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/

test.each([
  undefined,
  '',
  [`00-${trace}-${span}-01`],
  `00-${'0'.repeat(32)}-${span}-01`,
  `00-${trace}-${'0'.repeat(16)}-01`,
  `00-${trace.toUpperCase()}-${span}-01`,
  `ff-${trace}-${span}-01`,
  `00-${trace}-${span}-01-more`,
  `more 00-${trace}-${span}-01`,
])('a trace context that is none, %j, is replaced by one of our own, that nobody samples', (header) => {
  const made = traceparentOf(header)
  expect(made).toMatch(own)
  expect(made).not.toContain(trace)
})

test('a trace context that a client gives goes on as it is', () => {
  expect(traceparentOf(`00-${trace}-${span}-01`)).toBe(`00-${trace}-${span}-01`)
})

test('no two of our own are the same, however many are made', () => {
  const made = Array.from({ length: 2_000 }, () => traceparentOf(undefined))
  for (const one of made) expect(one).toMatch(own)
  for (const place of [1, 2]) expect(new Set(made.map((one) => one.split('-')[place])).size).toBe(made.length)
})

test.each([0, 0.3, 1])(
  'of all requests %d are traced, whatever clients ask for, but for those that ask for none',
  async (ratio) => {
    const url = 'http://127.0.0.1:9'
    const tracer = await createTracer('gateway', { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_TRACES_SAMPLER_ARG: ratio })
    const askMany = (header?: string) =>
      Array.from({ length: 2_000 }, () => traceRequest({ tracer }, header, { method: 'GET', pattern: '/v1/me' }))
    const shareOf = (asked: ReturnType<typeof askMany>) => asked.filter((one) => one.span).length / asked.length
    const asking = askMany(`00-${trace}-${span}-01`)
    for (const one of asking) expect(one.traceparent).toMatch(new RegExp(`^00-${trace}-.*-0${one.span ? 1 : 0}$`))
    expect(shareOf(asking)).toBeCloseTo(ratio, 1)
    // A trace id that is as small as can be is taken by whoever goes by the id.
    expect(shareOf(askMany(`00-${'1'.padStart(32, '0')}-${span}-01`))).toBeCloseTo(ratio, 1)
    expect(shareOf(askMany())).toBeCloseTo(ratio, 1)
    expect(shareOf(askMany(`00-${trace}-${span}-00`))).toBe(0)
  },
)

describe('spans', () => {
  let gateway: TestGateway
  let collector: Collector
  beforeAll(async () => {
    ;[gateway, collector] = await Promise.all([startTestGateway(), startCollector()])
    gateway.app.tracer = await createTracer('gateway', { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
  })
  afterAll(async () => {
    await gateway.close()
    collector.close()
  })

  test.each([
    ['/v1/health', 200, undefined],
    ['/v1/nothing', 404, undefined],
    ['/v1/nobody', 503, '503'],
    ['/setup', 404, undefined],
    ['/media/nothing', 503, '503'],
  ])('that of %s is below its client’s, and with %i its failure is %s', async (path, status, failure) => {
    const own = randomBytes(16).toString('hex')
    const headers = { traceparent: `00-${own}-${span}-01` }
    const answer = await gateway.ask(path, { key: gateway.platform.issueKey().text, headers })
    expect(answer.status).toBe(status)
    const spans = () => collector.of(own).filter(({ parentSpanId }) => parentSpanId === span)
    await expect.poll(spans).toEqual([expect.objectContaining({ status: failure })])
  })
})
