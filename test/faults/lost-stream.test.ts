import { withBus } from '@app/deploy/stack/bus.ts'
import { readBusPlace } from '@app/deploy/stack/stack-file.ts'
import { consumers } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { expect, test } from 'vitest'
import { clientOf, until } from '../journeys/client.ts'
import { ownStack } from './own-stack.ts'

const own = ownStack()

/** As the operator, who alone may do this. */
const asOperator = <T>(work: Parameters<typeof withBus<T>>[1]) =>
  withBus(readBusPlace(own.stack.dataDir) ?? { natsUrl: '' }, work)

test('a stream that was deleted is made anew by the services, with all its consumers, and each event is delivered once', async () => {
  const { api, sendText } = clientOf(own.stack.read())
  const body = { url: own.receiver.url, events: ['message.sent'] }
  expect((await api('POST', '/webhook_subscriptions', { body })).status).toBe(201)
  const delivered = (id: string) =>
    own.receiver.of('message.sent').filter((each) => each.body.data.message?.id === id || each.body.data.id === id)
  const before = await sendText('before')
  await until(() => expect(delivered(before.body.data.id)).toHaveLength(1))

  await asOperator(async ({ nc }) => (await nc.jetstreamManager()).streams.delete(streamName))
  const meanwhile = await sendText('meanwhile')
  expect(meanwhile.status).toBe(200)
  await until(() => expect(delivered(meanwhile.body.data.id)).toHaveLength(1))
  await until(async () => {
    const names = await asOperator(async ({ nc }) => {
      const list = await (await nc.jetstreamManager()).consumers.list(streamName).next()
      return list.map(({ name }) => name)
    })
    expect(names.toSorted()).toEqual(
      Object.values(consumers)
        .map(({ name }) => name)
        .toSorted(),
    )
  })
  expect(delivered(before.body.data.id)).toHaveLength(1)
})
