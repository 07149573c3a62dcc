import { Registry } from 'prom-client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Reading, readings } from './readings.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const gauges = { svc_waiting: { help: 'What waits.' }, svc_by_kind: { help: 'By kind.', labelNames: ['kind'] } }
const linesOf = async (registry: Registry) =>
  (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))

test('a source is asked every 10 s at most, however often it is scraped', async () => {
  const registry = new Registry()
  const read = vi.fn(() => Promise.resolve<Reading[]>([{ gauge: 'svc_waiting', value: read.mock.calls.length }]))
  readings(registry, 'test', gauges, read)
  expect(await linesOf(registry)).toEqual(['svc_waiting 1'])
  vi.advanceTimersByTime(9_999)
  expect(await linesOf(registry)).toEqual(['svc_waiting 1'])
  vi.advanceTimersByTime(1)
  expect(await linesOf(registry)).toEqual(['svc_waiting 2'])
})

test('a source that is away or hangs leaves its gauges out, and is counted', async () => {
  const registry = new Registry()
  const answers = [Promise.reject(new Error('away')), new Promise<Reading[]>(() => {})]
  readings(registry, 'test', gauges, () => answers.shift() ?? Promise.resolve([]))
  await registry.metrics()
  expect(await linesOf(registry)).toEqual(['svc_readings_failed_total{source="test"} 1'])
  vi.advanceTimersByTime(10_000)
  const scrape = linesOf(registry)
  await vi.advanceTimersByTimeAsync(2_000)
  await scrape
  expect(await linesOf(registry)).toEqual(['svc_readings_failed_total{source="test"} 2'])
})

test('two sources give values of one gauge, and a value that is not told any more goes', async () => {
  const registry = new Registry()
  let kinds = ['a', 'b']
  readings(registry, 'one', gauges, async () =>
    kinds.map((kind) => ({ gauge: 'svc_by_kind', labels: { kind }, value: 1 })),
  )
  readings(registry, 'two', gauges, async () => [{ gauge: 'svc_by_kind', labels: { kind: 'c' }, value: 2 }])
  expect(await linesOf(registry)).toEqual(
    ['a 1', 'b 1', 'c 2'].map((end) => `svc_by_kind{kind="${end.replace(' ', '"} ')}`),
  )
  kinds = ['a']
  vi.advanceTimersByTime(10_000)
  expect(await linesOf(registry)).toHaveLength(2)
})
