import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { businessAccountId, inboundValue, metadata } from '../testing/callbacks.ts'
import { recordMessages } from './record-message.ts'
import type { WaitingItem } from './waiting-items.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())

function itemOf(organizationId: string, n: number): WaitingItem {
  const { contacts, messages } = inboundValue(`wamid.MANY${n}`, 'hi')
  return {
    kind: 'message',
    seq: String(n),
    attempts: 0,
    organizationId,
    phoneNumberId: app.number.phoneNumberId,
    accountId: newId('acc'),
    senderPhone: null,
    businessAccountId,
    receivedAt: new Date(),
    entryId: businessAccountId,
    metadata,
    contacts,
    part: messages[0] ?? {},
  }
}

test("one organization's messages ask directory a limited number at a time, and another's do not wait for them", async () => {
  let [asking, most] = [0, 0]
  const { promise: after, resolve: letAnswer } = Promise.withResolvers<void>()
  const request: typeof app.request = async (...question) => {
    most = Math.max(most, ++asking)
    await after
    return app.request(...question).finally(() => asking--)
  }
  const recordMessage = recordMessages({ ...app, request })
  const [many, other] = [newId('org'), newId('org')]
  const recorded = Promise.all([
    ...Array.from({ length: 600 }, (_, n) => recordMessage(itemOf(many, n))),
    recordMessage(itemOf(other, 0)),
  ])
  expect(asking).toBe(256 + 1)
  letAnswer()
  await recorded
  expect(most).toBe(256 + 1)
  expect(await app.sql`select from messages where organization_id in (${many}, ${other})`).toHaveLength(601)
})
