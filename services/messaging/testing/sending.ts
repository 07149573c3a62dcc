import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { accept, type TestMessaging, testMessaging } from './app.ts'

/** The service for the tests of a file, with a platform that accepts what is sent; there once they run. */
export function messagingThatSends() {
  const it = {} as { app: TestMessaging }
  beforeAll(async () => {
    it.app = await testMessaging()
  })
  afterAll(() => it.app.close())
  beforeEach(() => it.app.respondWith(accept))
  return Object.assign(it, {
    eventually: (id: string, status: string) => until(async () => expect(await it.app.statusOf(id)).toBe(status)),
    /** What was told of the message. */
    eventsOf: async (id: string) => (await it.app.events()).filter((event) => event.id.startsWith(id)),
    /** Lets the time of a parked or waiting send pass. */
    passTime: async (id: string, lane: string) => {
      const { sql, dispatcher } = it.app
      await sql`update sends set parked_until = now() - interval '1 s' where message_id = ${id} and parked_until is not null`
      await sql`update send_lanes set due_at = now() where id = ${lane}`
      dispatcher.wake()
    },
  })
}
