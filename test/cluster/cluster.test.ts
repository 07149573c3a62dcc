import { setTimeout as sleep } from 'node:timers/promises'
import { clusterNames } from '@app/deploy/nats/nats-servers.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { check } from '../faults/history/check.ts'
import { newHistory } from '../faults/history/history.ts'
import { between, randomOf } from '../faults/random.ts'
import { clientOf } from '../journeys/client.ts'
import { type Receiver, startReceiver } from '../journeys/receiver.ts'
import { type Cluster, startCluster, untilTrue } from './cluster.ts'
import { gather, gatherEvents, listMessages } from './gather.ts'
import { createHonestClient } from './honest-client.ts'
import { instanceOf, killAndWait, natsServerOf, serverOf, type Target } from './kills.ts'
import { play, type Written } from './people.ts'
import { countsOf, type Episode, reportOf } from './report.ts'
import { seed } from './seed.ts'

let cluster: Cluster
let receiver: Receiver
beforeAll(async () => {
  cluster = await startCluster()
  receiver = await startReceiver()
}, 180_000)
afterAll(async () => {
  await cluster?.remove()
  receiver?.close()
}, 60_000)

const people = 20
/** Between the end of the trouble and the next kill. */
const calmMs = 4_000
const caughtUpWithinMs = 40_000

const events = ['message.received', 'message.sent', 'message.status']

async function* targets(): AsyncGenerator<Target> {
  const random = randomOf(seed, 'targets')
  const left = [...clusterNames]
  while (left.length > 0) {
    const server = await natsServerOf(cluster, left)
    left.splice(left.indexOf(server.name), 1)
    yield server
  }
  for (const service of ['gateway', 'messaging', 'directory', 'platform', 'webhooks'])
    yield instanceOf(cluster, service, between(random, 0, 2))
  yield serverOf(cluster, 'redis')
  yield serverOf(cluster, 'postgres')
}

test('any process is killed with -9 under load: nothing lost, nothing twice, no error past a few tries', async () => {
  const stack = cluster.stack.read()
  const history = newHistory()
  const client = createHonestClient(stack, history)
  const plain = clientOf(stack)
  const tenant = stack.organization_id
  const subscription = { url: receiver.url, events }
  expect((await plain.api('POST', '/webhook_subscriptions', { body: subscription })).status).toBe(201)
  history.subscriptions = [{ id: 'all', tenant, events, phones: null, activeFrom: 0 }]
  const before = (await listMessages(plain, 'inbound')).map(({ message_id: id }) => id as string)
  const written: Written[] = []
  let isOver = false
  const arrivals = () => {
    const first = new Map<string, number>()
    for (const { headers, at } of receiver.deliveries.toReversed()) first.set(headers['x-svc-event-id'] ?? '', at)
    return first
  }
  const hasCome = (id: string) => receiver.deliveries.some(({ headers }) => headers['x-svc-event-id'] === id)
  const playing = play({ stack, history, client, hasCome, isOver: () => isOver }, people, written)
  const hasCaughtUp = () => {
    const came = arrivals()
    const hasEnded = (id: string) => came.has(`${id}:sent`) || came.has(`${id}:failed`)
    return history.accepted.every(({ id, acceptedAt }) => acceptedAt > Date.now() - 1_000 || hasEnded(id))
  }

  const conversations = () => new Set(history.accepted.map(({ conversation }) => conversation)).size
  const hasBegun = () => conversations() === people && hasCaughtUp()
  await untilTrue(hasBegun, caughtUpWithinMs, 'The events do not come')
  const episodes: Episode[] = []
  for await (const target of targets()) {
    const from = Date.now()
    const backSeconds = await killAndWait(target)
    await untilTrue(hasCaughtUp, caughtUpWithinMs, `${target.what}: the events do not come`).catch(console.warn)
    await sleep(calmMs)
    episodes.push({ what: target.what, from, to: Date.now(), backSeconds })
  }
  isOver = true
  history.complaints = await playing

  const received = written.map(({ id }) => id)
  const isComplete = async () =>
    (await gather(plain, history, [...before, ...received])) && gatherEvents(history, receiver, received)
  await untilTrue(isComplete, caughtUpWithinMs, 'Not everything has ended').catch(console.warn)
  const seen = { asked: client.asked, accepted: history.accepted, arrivals: arrivals() }
  console.log(`seed ${seed}\n${reportOf(episodes, seen)}\n${countsOf(history, seen)}`)
  expect(check(history)).toEqual([])
  await client.close()
}, 600_000)
