import { freezeFor } from '@app/test/freeze.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { consumeBatches } from './consume.ts'
import { consumers, provision } from './provision.ts'
import { streamName } from './stream.ts'
import { someEvent } from '../testing/some-event.ts'

let app: TestService
beforeAll(async () => (app = await testService('platform')))
afterAll(() => app.close())

test('what the stream had sent when a consumer was told to stop is given back at once', async () => {
  const { name, subject } = consumers.platformAccountReports
  const count = 20
  const seen = new Set<string>()
  const listen = () =>
    consumeBatches(app, name, async (events) => {
      for (const { payload } of events) seen.add(Buffer.from(payload).toString())
    })
  await provision(app.nc)
  const first = listen()
  const { nc } = app
  const jsm = await nc.jetstreamManager()
  await until(async () => expect((await jsm.consumers.info(streamName, name)).num_waiting).toBe(1))
  for (let n = 0; n < count; n++) nc.publish(subject, String(n), someEvent())
  // They leave; what comes back is in the socket, unread, when it is stopped.
  await Promise.resolve()
  freezeFor(300)
  await first.stop()
  const second = listen()
  // All but one: a nats-server of 2.9 gives the first of them to the question that is over.
  await until(() => expect(seen.size).toBeGreaterThanOrEqual(count - 1), 5_000)
  await second.stop()
})
