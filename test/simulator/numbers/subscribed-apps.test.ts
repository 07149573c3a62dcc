import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startTrial, type Trial } from '../trial.ts'

const pathOf = ({ number }: Trial) => `/v23.0/${number.business_account_id}/subscribed_apps`

test('subscribes to the own business account, and to no other', async () => {
  const trial = await startTrial()
  const { graph, addNumber, number } = trial
  const path = pathOf(trial)
  expect(await graph(number, 'GET', path)).toEqual({ status: 200, body: { data: [] } })
  expect(await graph(number, 'POST', path)).toEqual({ status: 200, body: { success: true } })
  expect(await graph(number, 'POST', path, {})).toEqual({ status: 200, body: { success: true } })
  expect(await graph(number, 'GET', path)).toMatchObject({
    body: { data: [{ whatsapp_business_api_data: { id: '1000' } }] },
  })
  const other = await addNumber()
  for (const method of ['GET', 'POST', 'DELETE'])
    expect(await graph(other, method, path)).toMatchObject({ status: 403, body: { error: { code: 10 } } })
  expect(await graph(number, 'POST', '/v23.0/999999/subscribed_apps')).toMatchObject({
    status: 400,
    body: { error: { code: 100, error_subcode: 33 } },
  })
  expect(await graph(number, 'POST', path, { override_callback_uri: 'https://x.example/' })).toMatchObject({
    status: 400,
  })
})

test('tells of an account while the app is subscribed, when the settings want that', async () => {
  const trial = await startTrial({ settings: { require_subscription: true } })
  const { graph, receive, settled, receiver, number } = trial
  await receive(number)
  await graph(number, 'POST', pathOf(trial))
  const heard = await receive(number)
  await settled()
  await graph(number, 'DELETE', pathOf(trial))
  await receive(number)
  await trial.control('POST', 'callbacks', { kind: 'quality', phone_number_id: number.phone_number_id, event: 'X' })
  await settled()
  expect(receiver.changes()).toMatchObject([{ value: { messages: [{ id: heard }] } }])
})

test('knows its subscriptions after a restart', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'simulator-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const dataFile = join(folder, 'simulator.json')
  const before = await startTrial({ dataFile })
  await before.graph(before.number, 'POST', pathOf(before))
  await before.stop()
  const after = await startTrial({ dataFile })
  expect((await after.graph(before.number, 'GET', pathOf(before))).body['data']).toHaveLength(1)
})
