import { expect } from 'vitest'
import { clientOf, until } from '../../journeys/client.ts'
import { startStack } from '../../journeys/start-stack.ts'
import type { Own } from '../own-stack.ts'

/** Ctrl-C, and `npm start` again. */
export async function restart(own: Own): Promise<void> {
  const first = own.stack.read()
  const { body } = await clientOf(first).sendText('before the restart')
  await own.stack.stop()
  own.stack = await startStack([], own.stack.dataDir)
  const second = own.stack.read()
  expect(second).toMatchObject({ api_key: first.api_key, phone_number_id: first.phone_number_id })
  const { api, phone, sendText } = clientOf(second)
  await until(async () => {
    const answer = await api('GET', `/${phone}/messages/${body.data.id}`)
    expect(answer.body.data).toMatchObject({ content: 'before the restart' })
    // The simulator forgets with its end which statuses it has not told.
    expect(answer.body.data.status).toMatch(/^(sent|delivered|read)$/)
  })
  const again = await sendText('after the restart')
  await until(async () => {
    expect((await api('GET', `/${phone}/messages/${again.body.data.id}`)).body.data.status).toBe('read')
  })
}
