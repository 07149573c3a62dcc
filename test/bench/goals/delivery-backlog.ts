import type { Bench } from '../bench.ts'
import { type Child, startChild } from '../child.ts'
import type { PublishEvents } from '../load/publish-events.ts'
import type { Receiver } from '../load/receiver.ts'
import { median, quantile } from '../median.ts'
import { drain } from '../project/backlog.ts'
import { backlogLeft, fillBacklog, forgetBacklog } from '../project/fill-backlog.ts'
import { subscribe, type Subscription } from '../project/subscriptions.ts'
import { msText, oneAlone } from '../rounds.ts'
import { sizesOf } from '../sizes.ts'
import { addStatements, costsOfOne, spentBetween } from '../statements.ts'
import { type EventStream, eventDelays } from './event-delays.ts'
import type { Result } from './goal.ts'

/** Endpoints that were away and are back: each has at most as much as a subscription may hold. */
const fewestBehind = 10
const mostHeld = 100_000
/** And those that were there all the time. */
const healthy = 10

/** A backlog drains, and new events go to others at 200 a second meanwhile: their p95, and what is delivered of the backlog in a second. What is left then is taken away. */
export async function measureDeliveryBacklog(bench: Bench): Promise<Result> {
  const { options, say } = bench
  const receiver = startChild<Receiver>('load/receiver.ts')
  const other = startChild<Receiver>('load/receiver.ts')
  const publisher = startChild<PublishEvents>('load/publish-events.ts')
  const subscriptions: Subscription[] = []
  try {
    const stream = await openStream(bench, { receiver, publisher }, subscriptions)
    const p95 = async () => quantile(await eventDelays(stream, options.seconds), 0.95)
    if (!options.quick) await p95()
    const alone: number[] = []
    for (let round = 0; round < options.rounds; round++) alone.push(await p95())

    const { many } = sizesOf(options)
    const behind = await subscribeBehind(
      bench,
      Math.max(fewestBehind, Math.ceil(many / mostHeld)),
      other,
      subscriptions,
    )
    say(`deliveries: writing ${many} due deliveries …`)
    const statementsBefore = await bench.statements()
    const count = await fillBacklog(stream.project, behind, many)
    const startedAt = performance.now()
    const { beside, left } = await whileItDrains(() => backlogLeft(stream.project, behind), count, options.rounds, p95)
    const drained = count - left
    const perSecond = drained / ((performance.now() - startedAt) / 1000)
    const statements = spentBetween(statementsBefore, await bench.statements())
    await forgetBacklog(stream.project, behind)
    return {
      figures: [
        { name: 'backlogBeside', rounds: beside, from: `alone ${msText(median(alone))}` },
        oneAlone('backlogDrain', [perSecond], (value) => `${value.toFixed(0)} /s`),
      ],
      notes: [
        `new events while ${drained} of ${count} due deliveries drained, p95 of each ${options.seconds} s: ${beside.map(msText).join(', ')}`,
        ...costsOfOne('a delivery of the backlog', addStatements([statements]), drained),
      ],
      details: { alone, beside, count, left, perSecond },
    }
  } finally {
    for (const subscription of subscriptions) await subscription.delete()
    await drain(await bench.project())
    await Promise.all([receiver.stop(), other.stop(), publisher.stop()])
  }
}

interface Ends {
  receiver: Child<Receiver>
  publisher: Child<PublishEvents>
}

async function openStream(bench: Bench, ends: Ends, subscriptions: Subscription[]): Promise<EventStream> {
  const project = await bench.project()
  const { numbers } = await bench.fixture()
  const { url } = await ends.receiver.ask('start', undefined)
  const phoneNumberIds = numbers.slice(0, healthy).map(({ phoneNumberId }) => phoneNumberId)
  for (const [n, phoneNumberId] of phoneNumberIds.entries()) {
    const body = { url: `${url}/${n}`, events: ['message.sent'], phone_number_ids: [phoneNumberId] }
    subscriptions.push(await subscribe(project, body))
  }
  return { project, ...ends, phoneNumberIds }
}

async function subscribeBehind(bench: Bench, count: number, receiver: Child<Receiver>, subscriptions: Subscription[]) {
  const { url } = await receiver.ask('start', undefined)
  await receiver.ask('record', { keep: false })
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    const body = { url: `${url}/${n}`, events: ['message.revoked'] }
    const subscription = await subscribe(await bench.project(), body)
    subscriptions.push(subscription)
    ids.push(subscription.id)
  }
  return ids
}

/** Measures so often, at least once, and while something is left: a million take minutes. Throws when it gets no less. */
async function whileItDrains(
  countLeft: () => Promise<number>,
  count: number,
  rounds: number,
  measure: () => Promise<number>,
) {
  const beside: number[] = []
  let left = count
  while (left > 0 && beside.length < rounds) {
    beside.push(await measure())
    const now = await countLeft()
    if (now >= left) throw new Error(`of ${count} due deliveries ${now} are left, and none goes`)
    left = now
  }
  return { beside, left }
}
