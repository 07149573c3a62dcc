import { withBus } from '@app/deploy/stack/bus.ts'
import { readBusPlace } from '@app/deploy/stack/stack-file.ts'
import { consumers } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { expect } from 'vitest'
import { clientOf, until } from '../../journeys/client.ts'
import type { Own } from '../own-stack.ts'

/** The stream is deleted by the operator, who alone may do this. */
export async function loseStream({ stack, receiver }: Own): Promise<void> {
  const asOperator = <T>(work: Parameters<typeof withBus<T>>[1]) =>
    withBus(readBusPlace(stack.dataDir) ?? { natsUrl: '' }, work)
  const { sendText } = clientOf(stack.read())
  const delivered = (id: string) => receiver.of('message.sent').filter((each) => each.body.data.message?.id === id)
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
}
