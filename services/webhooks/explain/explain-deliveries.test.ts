import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { answer, type Receiver, startReceiver } from '../testing/receiver.ts'
import { explainDelivery } from './explain-deliveries.ts'

let webhooks: TestWebhooks
let receiver: Receiver
beforeAll(async () => {
  webhooks = await testWebhooks()
  receiver = await startReceiver()
})
afterAll(async () => {
  await receiver.close()
  await webhooks.close()
})

test('a delivery whose attempt is under way is told as that, and not as one that waits', async () => {
  const ends: (() => void)[] = []
  receiver.respondWith((...call) => void ends.push(() => answer(500)(...call)))
  await webhooks.subscribe({ url: receiver.url })
  await webhooks.emit({})
  await until(() => expect(ends).toHaveLength(1))
  const [delivery] = await webhooks.deliveries()
  const told = async () => {
    const { history } = await webhooks.ask(explainDelivery, { body: { id: delivery?.id ?? '' } })
    return history.map(({ what }) => what)
  }
  expect(await told()).toEqual(['message.received is to be delivered', 'is being delivered: attempt 1'])
  ends[0]?.()
  await until(async () =>
    expect(await told()).toEqual(['message.received is to be delivered', 'attempt 1 to deliver it: 500', 'is failed']),
  )
})

test('a delivery that waits for an endpoint that fails says so', async () => {
  receiver.respondWith(answer(500))
  await webhooks.subscribe({ url: receiver.url, events: ['message.sent'] })
  for (let n = 0; n < 6; n++) await webhooks.emit({ type: 'message.sent' })
  const told = async () => {
    const deliveries = await webhooks.deliveries()
    const asked = deliveries.map(({ id }) => webhooks.ask(explainDelivery, { body: { id } }))
    return (await Promise.all(asked)).map(({ history }) => history.at(-1)?.what)
  }
  await until(async () =>
    expect(await told()).toContainEqual(
      expect.stringMatching(/^is \w+, and its endpoint rests: it has failed \d+ times in a row$/),
    ),
  )
})

test('a delivery that waits for another one of its customer says for which', async () => {
  const ends: (() => void)[] = []
  receiver.respondWith((...call) => void ends.push(() => answer(200)(...call)))
  await webhooks.subscribe({ url: receiver.url, events: ['message.status'] })
  const one = { type: 'message.status', line: 'ctm_1' }
  const events = await webhooks.emit(one, one, { ...one, line: 'ctm_2' }, one)
  await until(() => expect(ends).toHaveLength(2))
  const [first, second, other, third] = await until(async () => {
    const deliveries = await webhooks.deliveries({ event_type: 'message.status' })
    const ids = events.map((event) => deliveries.find(({ event_id: id }) => id === event)?.id ?? '')
    expect(ids).not.toContain('')
    return ids
  })
  const told = async (id = '') => (await webhooks.ask(explainDelivery, { body: { id } })).history.at(-1)
  const isBehindIt = {
    what: `is pending, and waits behind ${first}: a customer’s events go one at a time`,
    details: { behind: first },
  }
  expect(await told(second)).toMatchObject(isBehindIt)
  expect(await told(third)).toMatchObject(isBehindIt)
  for (const id of [first, other]) expect(await told(id)).toMatchObject({ what: 'is being delivered: attempt 1' })
  receiver.respondWith(answer(200))
  for (const end of ends) end()
  await until(async () => expect(await told(third)).toMatchObject({ what: 'is succeeded' }))
})
