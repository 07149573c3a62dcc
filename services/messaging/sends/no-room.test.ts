import { ownSession } from '@app/shared/database/own-session.ts'
import { leaveNoRoom } from '@app/test/no-room.ts'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { startDispatcher } from './dispatch.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
  await app.dispatcher.stop()
})
afterAll(() => app.close())

test('a conversation goes on though Postgres has no room for the session that records what became of its sends', async () => {
  onTestFinished(await leaveNoRoom(app.sql, 6))
  const settling = ownSession(app.sql)
  const dispatcher = startDispatcher(app, settling)
  const sends = [await app.send('first'), await app.send('second')]
  for (const { id } of sends)
    await vi.waitFor(async () => expect(await app.statusOf(id)).toBe('sent'), { timeout: 8_000, interval: 50 })
  expect(app.calls.map(({ text }) => text)).toEqual(['first', 'second'])
  await dispatcher.stop()
  await settling.end()
})
