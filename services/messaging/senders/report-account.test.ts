import type { ServerResponse } from 'node:http'
import { newId } from '@app/shared/values/ids.ts'
import { sessionWithClock } from '@app/test/wrong-clock.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from '../app.ts'
import { refuse, type TestMessaging, testMessaging } from '../testing/app.ts'
import { markRead } from '../upstream/mark-read.ts'
import { askAs } from './report-account.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())

const markedRead = (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"success":true}')

test('what the platform leaves waiting of one organization takes no other’s connections; past its deadline it is not asked', async () => {
  const waiting: ServerResponse[] = []
  app.respondWith(({ body }, response) => {
    if (body['message_id'] === 'slow') waiting.push(response)
    else markedRead(response)
  })
  const ask = (organizationId: string, message_id: string, withinMs: number) => {
    const account = { organizationId, phoneNumberId: '106540352242922', businessAccountId: '1', token: 'token' }
    const deadline = performance.now() + withinMs
    return askAs(app, { ...account, deadline }, () => markRead(app.upstream, { ...account, message_id }, deadline))
  }
  const own = newId('org')
  // More than there are connections.
  const slow = Array.from({ length: 320 }, () => ask(own, 'slow', 20_000))
  const late = ask(own, 'late', 1).catch((err: unknown) => err)
  await until(() => expect(waiting.length).toBeGreaterThan(60))
  await ask(newId('org'), 'of another', 5_000)
  app.respondWith((_call, response) => void markedRead(response))
  for (const response of waiting) markedRead(response)
  await Promise.all(slow)
  expect(await late).toMatchObject({ failure: 'service_unavailable' })
  expect(app.calls.filter(({ body }) => body['message_id'] === 'late')).toEqual([])
})

test('a report is as of when the platform was asked by the clock of the database, whatever that of the host', async () => {
  const sql = await sessionWithClock(app.sql, -90_000)
  app.respondWith(refuse(190, 401))
  const { organizationId, phoneNumberId } = app.number
  const deadline = performance.now() + 5_000
  const account = { organizationId, phoneNumberId, businessAccountId: '1', token: 'token', deadline }
  const askedAt = Date.now() - 90_000
  const asking = askAs({ ...app, sql }, account, () =>
    markRead(app.upstream, { ...account, message_id: 'wamid.1' }, deadline),
  )
  await expect(asking).rejects.toThrow()
  const [report] = (await app.events()).filter(({ subject }) => subject === 'event.messaging.account-reported')
  expect(Math.abs(Date.parse(String(report?.payload['at'])) - askedAt)).toBeLessThan(10_000)
})

test('a refusal is told, though it cannot be reported', async () => {
  app.respondWith(refuse(190, 401))
  const { organizationId, phoneNumberId } = app.number
  const deadline = performance.now() + 5_000
  const account = { organizationId, phoneNumberId, businessAccountId: '1', token: 'token', deadline }
  const away = { begin: () => Promise.reject(new Error('the database is away')) } as unknown as App['sql']
  const asking = askAs({ ...app, sql: away }, account, () =>
    markRead(app.upstream, { ...account, message_id: 'wamid.2' }, deadline),
  )
  await expect(asking).rejects.toMatchObject({ name: 'UpstreamRefusal', code: 190 })
})
