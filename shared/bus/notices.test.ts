import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { type Bus, connectBus } from './bus.ts'
import { notice } from '../api/contract.ts'
import { hear, startTelling } from './notices.ts'

const changed = notice({
  subject: 'notice.directory.changed',
  summary: 'Changed',
  data: z.object({ ids: z.array(z.string()) }),
  nothing: { ids: [] },
})

let app: TestService
beforeAll(async () => {
  app = await testService('messaging')
})
afterAll(() => app.close())
afterEach(() => {
  vi.useRealTimers()
})

/** What is heard over a connection, what there is to say when there is nothing left out. */
function listen(bus: Pick<Bus, 'nc'>) {
  const heard: string[] = []
  const hearing = hear({ log: app.log, nc: bus.nc }, changed, ({ ids }) => void heard.push(...ids))
  return { heard, hearing }
}

/** Somebody who has listened for a while: in the first seconds not all are known who tell. */
function settled(bus: Pick<Bus, 'nc'>) {
  vi.useFakeTimers({ toFake: ['performance'] })
  const one = listen(bus)
  vi.advanceTimersByTime(60_000)
  return one
}

/** Whether all is heard that was told since that moment. */
const isWhole = ({ hearing }: ReturnType<typeof listen>, since: number) => hearing.wholeSince() <= since

test('all who hear are told, and what is malformed is passed over', async () => {
  const other = await connectBus('messaging', app.natsUrl, app.log)
  const one = listen(app)
  const another = listen(other)
  await Promise.all([app.nc.flush(), other.nc.flush()])
  const telling = startTelling(app, changed)
  app.nc.publish(changed.subject, '{"ids":7}')
  app.nc.publish(changed.subject, '{')
  telling.tell({ ids: ['a', 'b'] })
  await expect
    .poll(() => [one.heard, another.heard])
    .toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ])
  telling.stop()
  await other.nc.close()
})

test('nothing is thrown by telling without a connection', async () => {
  const other = await connectBus('directory', app.natsUrl, app.log)
  const telling = startTelling(other, changed)
  await other.nc.close()
  expect(() => telling.tell({ ids: [] })).not.toThrow()
  telling.stop()
})

test('who hears knows that something was told that did not arrive, and that all is told again from then on', async () => {
  const one = settled(app)
  await app.nc.flush()
  let isConnected = true
  const telling = startTelling({ nc: app.nc, isConnected: () => isConnected }, changed)
  await expect.poll(() => isWhole(one, performance.now())).toBe(true)
  const before = performance.now()
  vi.advanceTimersByTime(100)
  telling.tell({ ids: ['heard'] })
  await expect.poll(() => one.heard).toEqual(['heard'])
  expect(isWhole(one, before)).toBe(true)
  isConnected = false
  telling.tell({ ids: ['lost'] })
  isConnected = true
  // The next word shows it, and comes by itself.
  await expect.poll(() => isWhole(one, before), { timeout: 10_000 }).toBe(false)
  expect(isWhole(one, performance.now())).toBe(true)
  telling.stop()
  await expect.poll(() => isWhole(one, performance.now())).toBe(false)
  expect(one.heard).toEqual(['heard'])
})

test('an unnumbered notice is handled, and counts as missed', async () => {
  const one = settled(app)
  const telling = startTelling(app, changed)
  await expect.poll(() => isWhole(one, performance.now())).toBe(true)
  const before = performance.now()
  vi.advanceTimersByTime(100)
  app.nc.publish(changed.subject, '{"ids":["old"]}')
  await expect.poll(() => one.heard).toEqual(['old'])
  expect(isWhole(one, before)).toBe(false)
  telling.stop()
})
