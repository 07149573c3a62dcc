import { afterAll, expect, test } from 'vitest'
import { clientOf, until } from '../journeys/client.ts'
import { type StartedStack, startStack } from '../journeys/start-stack.ts'

let stack: StartedStack | undefined
afterAll(() => stack?.remove())

test('stopped and started again, the data is there, the key is good, and a send goes out', async () => {
  stack = await startStack()
  const first = stack.read()
  const { body } = await clientOf(first).sendText('before the restart')
  await stack.stop()
  stack = await startStack([], stack.dataDir)
  const second = stack.read()
  expect(second).toMatchObject({ api_key: first.api_key, phone_number_id: first.phone_number_id })
  const { api, phone, sendText } = clientOf(second)
  await until(async () => {
    const answer = await api('GET', `/${phone}/messages/${body.data.id}`)
    expect(answer.body.data).toMatchObject({ content: 'before the restart', status: 'read' })
  })
  const again = await sendText('after the restart')
  await until(async () => {
    expect((await api('GET', `/${phone}/messages/${again.body.data.id}`)).body.data.status).toBe('read')
  })
})
