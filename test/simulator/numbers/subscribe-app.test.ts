import { expect, test } from 'vitest'
import { startTrial } from '../trial.ts'

test('subscribes to the own business account, and to no other', async () => {
  const { graph, addNumber, number } = await startTrial()
  const path = `/v23.0/${number.business_account_id}/subscribed_apps`
  expect(await graph(number, 'POST', path)).toMatchObject({ status: 200, body: { success: true } })
  expect(await graph(await addNumber(), 'POST', path)).toMatchObject({ status: 403, body: { error: { code: 10 } } })
  expect(await graph(number, 'POST', '/v23.0/999999/subscribed_apps')).toMatchObject({
    status: 400,
    body: { error: { code: 100, error_subcode: 33 } },
  })
})
