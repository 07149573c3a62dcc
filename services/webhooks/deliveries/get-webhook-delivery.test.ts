import { systemCaller } from '@app/shared/bus/ask.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { getWebhookDelivery } from './get-webhook-delivery.ts'
import { replayWebhookDelivery } from './replay-webhook-delivery.ts'

let webhooks: TestWebhooks
beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(() => webhooks.close())

test.each([getWebhookDelivery, replayWebhookDelivery])(
  'an id of a time that no clock shows is nobody’s: %o',
  async (ask) => {
    const input = { params: { id: 'wbd_7ZZZZZZZZZZZZZZZZZZZZZZZZZ' }, query: {}, body: undefined }
    const work = ask(webhooks, input, systemCaller(webhooks.organizationId))
    expect(await work.then(() => null, toProblem)).toMatchObject({ failure: 'resource_not_found' })
  },
)
