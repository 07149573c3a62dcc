import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startDispatcher } from './dispatch.ts'
import { type TestMessaging, testMessaging } from '../testing/app.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
  await app.dispatcher.stop()
})
afterAll(() => app.close())

test('a claim whose commit was not answered has called nobody: its sends go out, each once', async () => {
  let lost = 0
  const losing = new Proxy(app.sql, {
    get(target, name, self) {
      if (name !== 'begin') return Reflect.get(target, name, self) as unknown
      return async (work: (tx: typeof target) => Promise<{ items?: object[] }>) => {
        const result = await target.begin((tx) => work(tx as never))
        if (!(result as unknown as { result: { items?: object[] } }).result.items?.length || lost++ > 0) return result
        throw Object.assign(new Error('the connection was lost'), { code: 'CONNECTION_CLOSED' })
      }
    },
  })
  const sends = await Promise.all([1, 2, 3].map((n) => app.send(`claimed ${n}`, { to: `+1555019000${n}` })))
  const dispatcher = startDispatcher({ ...app, sql: losing })
  for (const { id } of sends)
    await vi.waitFor(async () => expect(await app.statusOf(id)).toBe('sent'), { timeout: 5_000, interval: 20 })
  await dispatcher.stop()
  expect(lost).toBeGreaterThan(0)
  expect(app.calls.map(({ messageId }) => messageId).toSorted()).toEqual(sends.map(({ id }) => id).toSorted())
  const attempts = await app.sql`select attempt, outcome from send_attempts`
  expect(attempts).toEqual(sends.map(() => ({ attempt: 1, outcome: 'sent' })))
})
