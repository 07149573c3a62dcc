import { answerCommand } from '@app/deploy/administration/answer.ts'
import { withBus } from '@app/deploy/stack/bus.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startTestNats, type TestNats } from './nats.ts'

let nats: TestNats
beforeAll(async () => {
  nats = await startTestNats()
})
afterAll(() => nats.stop())

test('a command waits for services that have just been started, and says so', async () => {
  const told = vi.spyOn(console, 'error').mockImplementation(() => {})
  const place = { natsUrl: nats.url }
  const answer = answerCommand(['organization', 'list'], 'req_1', () => place)
  await vi.waitUntil(() => told.mock.calls.length > 0, { timeout: 10_000 })
  expect(told.mock.calls).toEqual([
    ['Nobody answers to rpc.platform.list-organizations yet; asking for half a minute …'],
  ])
  const none = { organizations: [], next_after: null }
  await withBus(place, async ({ nc }) => {
    const callback = (_err: unknown, question: { respond: (data: string) => void }) =>
      question.respond(JSON.stringify({ data: none }))
    nc.subscribe('rpc.platform.list-organizations', { callback })
    expect(await answer).toEqual(none)
  })
  expect(told).toHaveBeenCalledTimes(1)
})

test('a command that gets no answer says from where', async () => {
  const place = { natsUrl: nats.url }
  await withBus(place, async ({ nc }) => {
    nc.subscribe('rpc.platform.explain-key')
    const answer = answerCommand(['explain', newId('key')], 'req_1', () => place)
    await expect(answer).rejects.toThrow('Not available at the moment: no answer from rpc.platform.explain-key.')
  })
})
