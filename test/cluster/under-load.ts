import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { check } from '../faults/history/check.ts'
import { newHistory } from '../faults/history/history.ts'
import { clientOf } from '../journeys/client.ts'
import { startReceiver } from '../journeys/receiver.ts'
import { type Cluster, untilTrue } from './cluster.ts'
import { gather, gatherEvents, listMessages } from './gather.ts'
import { createHonestClient } from './honest-client.ts'
import { play, type Written } from './people.ts'
import { countsOf, type Episode, reportOf } from './report.ts'
import { seed } from './seed.ts'

/** Something that breaks. */
export interface Trouble {
  what: string
  /** Resolves when it is whole again, with the seconds that took. */
  run: () => Promise<number>
}

const people = 40
/** Between the end of a trouble and the next one. */
const calmMs = 4_000
const caughtUpWithinMs = 40_000
/** What the stream lost is missed some minutes later (shared/events/audit.ts). */
const missedWithinMs = 8 * 60_000

const events = ['message.received', 'message.sent', 'message.status']

/** One trouble after the other under load, each when what came before has been told: nothing lost, nothing twice, no error past a few tries. */
export async function breakUnderLoad(cluster: Cluster, troubles: AsyncIterable<Trouble>): Promise<void> {
  const receiver = await startReceiver()
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
  await untilTrue(hasBegun, 2 * caughtUpWithinMs, 'The events do not come')
  const episodes: Episode[] = []
  for await (const { what, run } of troubles) {
    const from = Date.now()
    const backSeconds = await run()
    await untilTrue(hasCaughtUp, caughtUpWithinMs, `${what}: the events do not come`).catch(console.warn)
    await sleep(calmMs)
    episodes.push({ what, from, to: Date.now(), backSeconds })
  }
  isOver = true
  history.complaints = await playing

  const received = written.map(({ id }) => id)
  const isComplete = async () =>
    (await gather(plain, history, [...before, ...received])) && gatherEvents(history, receiver, received)
  await untilTrue(isComplete, missedWithinMs, 'Not everything has ended').catch(console.warn)
  const seen = { asked: client.asked, accepted: history.accepted, arrivals: arrivals() }
  console.log(`seed ${seed}\n${reportOf(episodes, seen)}\n${countsOf(history, seen)}`)
  expect(check(history)).toEqual([])
  await client.close()
  receiver.close()
}
