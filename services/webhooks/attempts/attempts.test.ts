import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { newId } from '@app/shared/ids.ts'
import { answer, type Receiver, startReceiver, type TestWebhooks, testWebhooks } from '../testing/app.ts'

let webhooks: TestWebhooks
let receiver: Receiver

beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(() => webhooks.close())

beforeEach(async () => {
  await receiver?.close()
  receiver = await startReceiver()
  await webhooks.sql`truncate subscriptions, secrets, lanes, events, deliveries, due_deliveries, dead_deliveries, attempts`
})

test('an event is posted with its bytes and the headers of the public API', async () => {
  const { id } = await webhooks.subscribe({ url: receiver.url })
  const payload = '{"b":1,  "a":"é😀\\u0000","n":1e400}'
  const [eventId] = await webhooks.emit({ payload })
  await vi.waitFor(() => expect(receiver.got).toHaveLength(1))
  const [call] = receiver.got
  expect(call?.body.toString()).toBe(payload)
  const [delivery] = await vi.waitFor(async () => {
    const found = await webhooks.deliveries({ status: 'succeeded' })
    expect(found).toHaveLength(1)
    return found
  })
  expect(call?.headers).toMatchObject({
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'x-svc-source': 'svc',
    'x-svc-event': 'message.received',
    'x-svc-event-id': eventId,
    'x-svc-delivery-id': delivery?.id,
    'x-svc-attempt': '1',
  })
  expect(delivery).toMatchObject({
    subscription_id: id,
    event_id: eventId,
    attempt_count: 1,
    response_status: 200,
    response_body_snippet: 'ok',
    next_attempt_at: null,
    error_code: null,
  })
})
