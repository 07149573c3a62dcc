import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { clientOf } from '../journeys/client.ts'
import { kill, ownStack } from './own-stack.ts'
import { postCallbacks } from './stories/callbacks.ts'
import { killGateway } from './stories/kill-gateway.ts'
import { loseStream } from './stories/lost-stream.ts'
import { restart } from './stories/restart.ts'
import { sendMany } from './stories/sends.ts'

/** One of each service, broken in one way after the other; each story leaves the stack whole. */
const own = ownStack()

const events = [
  'message.received',
  'message.sent',
  'message.status',
  'message.revoked',
  'message.edited',
  'contact.created',
]
beforeAll(async () => {
  const body = { url: own.receiver.url, events }
  const created = await clientOf(own.stack.read()).api('POST', '/webhook_subscriptions', { body })
  expect(created.status).toBe(201)
})

const victims = ['messaging', 'webhooks', 'gateway', 'directory', 'messaging']

test(
  'kill -9 of messaging, webhooks, gateway and directory under 200 sends and callbacks of every kind: nothing lost, nothing twice, order kept, all explained',
  { timeout: 240_000 },
  async () => {
    const sendsAreRight = await sendMany(own)
    const callbacksAreRight = postCallbacks(own)
    for (const service of victims) {
      await sleep(250)
      await kill(own, service)
    }
    await callbacksAreRight()
    await sendsAreRight(victims.filter((service) => service === 'messaging').length)
  },
)

test('kill -9 of the gateway with 200 sends unanswered: repeated with their keys, each is one message and goes out once', () =>
  killGateway(own))

test('a stream that was deleted is made anew by the services, with all its consumers, and each event is delivered once', () =>
  loseStream(own))

test('stopped and started again, the data is there, the key is good, and a send goes out', () => restart(own))
