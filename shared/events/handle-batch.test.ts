import { testService, type TestService } from '@app/test/service.ts'
import { headers, type JsMsg } from 'nats'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../values/ids.ts'
import type { Delivered } from './events.ts'
import { handleBatch } from './handle-batch.ts'
import { eventHeader } from './stream.ts'

let app: TestService
beforeAll(async () => {
  app = await testService('messaging')
})
afterAll(() => app.close())

const tooSlow = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })
const notes = { add() {}, stop: () => Promise.resolve() }

/** Messages of the stream; `back` has those that are given back, and the pauses until they come again. */
function messagesOf(ids: string[], redeliveryCount = 1) {
  const back: [id: string, pauseMs?: number][] = []
  const messages = ids.map((id) => {
    const carrier = headers()
    carrier.set(eventHeader, JSON.stringify({ organization: 'org_1', event: id }))
    const nak = (...pause: [number?]) => back.push([id, ...pause])
    const message = {
      subject: 'event.any',
      headers: carrier,
      data: Buffer.from('{}'),
      info: { redeliveryCount },
      ack() {},
      nak,
    }
    return message as unknown as JsMsg
  })
  return { messages, back }
}

test('of a batch that is handled one by one, what an instance that stops has not begun goes to another one at once', async () => {
  let isStopped = false
  const { messages, back } = messagesOf(['first', 'second', 'third'])
  const handle = async ({ length }: Delivered[]) => {
    if (length > 1) throw new Error('together')
    isStopped = true
  }
  await handleBatch({ app, consumer: 'any', notes, handle }, messages, () => isStopped)
  expect(back).toEqual([['second'], ['third']])
})

test('an event at which the handler fails comes again after a second, and after twice as long each time', async () => {
  const { messages, back } = messagesOf([newId('evt')])
  const handle = () => Promise.reject(new Error('no'))
  for (let n = 0; n < 3; n++) await handleBatch({ app, consumer: 'failing', notes, handle }, messages, () => false)
  expect(back.map(([, pauseMs]) => pauseMs)).toEqual([1_000, 2_000, 4_000])
})

test.each([
  [1, 1_000],
  [4, 8_000],
  [20, 300_000],
])('an event whose statements take too long at try %i comes again after %i ms', async (count, pauseMs) => {
  const { messages, back } = messagesOf(['slow'], count)
  await handleBatch({ app, consumer: 'any', notes, handle: () => Promise.reject(tooSlow) }, messages, () => false)
  expect(back).toEqual([['slow', pauseMs]])
})

test('a batch whose statements take too long is tried three times, and then one by one', async () => {
  const { messages, back } = messagesOf(['good', 'slow'])
  const sizes: number[] = []
  const handle = async (events: Delivered[]) => {
    sizes.push(events.length)
    if (events.some(({ headers: { event } }) => event === 'slow')) throw tooSlow
  }
  await handleBatch({ app, consumer: 'any', notes, handle }, messages, () => false)
  expect(sizes).toEqual([2, 2, 2, 1, 1, 1, 1])
  expect(back).toEqual([['slow', 1_000]])
})
