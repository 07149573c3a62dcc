import { afterAll, beforeAll } from 'vitest'
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
