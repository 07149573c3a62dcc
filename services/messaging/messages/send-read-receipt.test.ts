import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { refuse, type TestMessaging, testMessaging } from '../testing/app.ts'
import { businessAccountId, inboundValue, platformOf } from '../testing/callbacks.ts'
import { sendReadReceipt } from './send-read-receipt.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
})
afterAll(() => app.close())
beforeEach(async () => {
  await app.setSender({})
  app.respondWith((_call, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ success: true }))
  })
})

async function received(id: string) {
  await platform.messages(inboundValue(id, 'hi'))
  await vi.waitFor(async () => expect(await statusOf(id)).toBe('delivered'), { timeout: 10_000, interval: 20 })
}
const statusOf = async (id: string) =>
  (await app.sql<{ status: string }[]>`select status from messages where upstream_id = ${id}`)[0]?.status

const receipt = (message_id: string) => {
  const { organizationId, phoneNumberId } = app.number
  return sendReadReceipt(app, phoneNumberId, { status: 'read', message_id }, systemCaller(organizationId))
}
const callsFor = (id: string) => app.calls.filter(({ body }) => body['message_id'] === id)
const reports = async () =>
  (await app.events())
    .filter(({ subject }) => subject === 'event.messaging.account-reported')
    .map(({ payload }) => payload)

test('a receipt reaches the platform and marks the message', async () => {
  await received('wamid.R1')
  expect(await receipt('wamid.R1')).toMatchObject({ status: 200 })
  expect(callsFor('wamid.R1')).toHaveLength(1)
  expect(await statusOf('wamid.R1')).toBe('read')
})

test.each([
  ['detached', { attached: false }],
  ['disconnected', { refusal: 'account_not_connected' as const }],
])('a number that is %s tells the platform nothing: its token is not to be used any more', async (how, changes) => {
  const id = `wamid.R2.${how}`
  await received(id)
  await app.setSender(changes)
  await expect(receipt(id)).rejects.toMatchObject({ failure: 'account_not_connected' })
  expect(callsFor(id)).toEqual([])
  expect(await statusOf(id)).toBe('delivered')
})

test('a token that the platform takes no more is reported, and the receipt refused', async () => {
  await received('wamid.R3')
  app.respondWith(refuse(190, 401))
  await expect(receipt('wamid.R3')).rejects.toMatchObject({ failure: 'upstream_refused' })
  expect(await reports()).toEqual([
    { phone_number_id: app.number.phoneNumberId, business_account_id: businessAccountId, code: 190, change: null },
  ])
  expect(await statusOf('wamid.R3')).toBe('delivered')
})

test('a platform that is not well is no report: the same request goes through later', async () => {
  await received('wamid.R4')
  const before = await reports()
  app.respondWith(refuse(131016, 500))
  await expect(receipt('wamid.R4')).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(await reports()).toEqual(before)
})
