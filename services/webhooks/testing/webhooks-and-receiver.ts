import { afterAll, beforeAll, beforeEach, vi } from 'vitest'
import { type TestWebhooks, testWebhooks } from './app.ts'
import { type Receiver, startReceiver } from './receiver.ts'

/** The service and an endpoint for the tests of a file; there once they run. */
export function webhooksAndReceiver() {
  const both = {} as { webhooks: TestWebhooks; receiver: Receiver }
  beforeAll(async () => {
    both.webhooks = await testWebhooks()
    both.receiver = await startReceiver()
  })
  afterAll(async () => {
    await both.receiver.close()
    await both.webhooks.close()
  })
  return both
}

/** The service for the tests of a file, and an endpoint of its own for each; there once they run. */
export function webhooksAndReceivers() {
  const both = {} as { webhooks: TestWebhooks; receiver: Receiver }
  beforeAll(async () => {
    both.webhooks = await testWebhooks()
  })
  afterAll(async () => {
    await both.receiver.close()
    await both.webhooks.close()
  })
  beforeEach(async () => {
    await both.receiver?.close()
    both.receiver = await startReceiver()
    await both.webhooks.clear()
  })
  return Object.assign(both, {
    /** The only delivery, when it is as told. */
    theDelivery: (query: object) =>
      vi.waitFor(
        async () => {
          const [delivery, ...others] = await both.webhooks.deliveries(query)
          if (!delivery || others.length > 0) throw new Error('not yet')
          return delivery
        },
        { timeout: 10_000, interval: 20 },
      ),
  })
}
