import { type Collector, startCollector } from '@app/test/collector.ts'
import { type TestService, testService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { call, systemCaller } from '../bus/ask.ts'
import { consumeBatches } from '../events/consume.ts'
import { event, type Handler, rpc } from '../api/contract.ts'
import { emit } from '../events/events.ts'
import { Problem } from '../api/problem.ts'
import { consumers, provision } from '../events/provision.ts'
import { startRelay } from '../events/relay.ts'
import { serve } from '../bus/rpc.ts'
import { createTracer, type Tracer } from './tracing.ts'

const doIt = rpc({
  subject: 'rpc.messaging.do-it',
  summary: 'Tells of something, or refuses',
  body: z.object({ refuse: z.boolean() }),
  answer: z.object({}),
})
const itHappened = event({ subject: 'event.messaging.message-sent', summary: 'It happened', data: z.object({}) })

let service: TestService
let collector: Collector
let tracer: Tracer | undefined

beforeAll(async () => {
  ;[service, collector] = await Promise.all([testService('directory'), startCollector()])
  await provision(service.nc)
  tracer = await createTracer('test', { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
})
afterAll(async () => {
  await service.close()
  collector.close()
})

const caller = (traceparent: string) => ({ ...systemCaller('org_1'), traceparent })
const contextOf = (traceId: string, flags = '01') => `00-${traceId.padStart(32, 'a')}-00f067aa0ba902b7-${flags}`

test('what a question causes, over the bus and through the outbox, is one trace; what is not sampled is none', async () => {
  const app = { ...service, tracer }
  const relay = startRelay(app)
  const handle: Handler<typeof app, typeof doIt> = async ({ sql }, { body }, asking) => {
    if (body.refuse) throw new Problem('resource_not_found')
    await sql.begin((tx) => emit(tx, itHappened, {}, { organizationId: 'org_1', traceparent: asking.traceparent }))
    relay.wake()
    return {}
  }
  const serving = await serve({ ...app, name: 'messaging' } as const, { doIt }, { doIt: handle })
  const told: (string | undefined)[] = []
  const consuming = consumeBatches(app, consumers.directorySentMessages.name, async (events) => {
    told.push(...events.map(({ headers }) => headers.trace))
  })

  await call(app, doIt, { body: { refuse: false } }, caller(contextOf('1', '00')))
  await call(app, doIt, { body: { refuse: false } }, caller(contextOf('2')))
  await call(app, doIt, { body: { refuse: true } }, caller(contextOf('3'))).catch(() => {})
  await expect.poll(() => told).toHaveLength(2)
  await Promise.all([serving.stop(), consuming.stop()])
  await relay.stop()
  await tracer?.stop()

  expect(told[0]).toBe(contextOf('1', '00'))
  const spans = collector.of(contextOf('2').slice(3, 35))
  const chain = ['rpc.messaging.do-it', 'rpc.messaging.do-it', itHappened.subject, itHappened.subject]
  expect(spans.map(({ name }) => name).toSorted()).toEqual(chain.toSorted())
  let parent = '00f067aa0ba902b7'
  for (const name of chain) {
    const span = spans.find(({ parentSpanId }) => parentSpanId === parent)
    expect(span?.name).toBe(name)
    parent = span?.spanId ?? ''
  }
  expect(told[1]).toContain(parent)
  expect(collector.of(contextOf('1').slice(3, 35))).toEqual([])
  expect(collector.of(contextOf('3').slice(3, 35)).map(({ status }) => status)).toEqual([
    'resource_not_found',
    'resource_not_found',
  ])
})

test('without an address nothing is made', async () => {
  expect(await createTracer('test', {})).toBeUndefined()
})
