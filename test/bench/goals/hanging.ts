import { busPlaceOf } from '@app/deploy/stack/stack-file.ts'
import { type Child, startChild } from '../child.ts'
import type { PublishEvents } from '../load/publish-events.ts'
import type { Receiver } from '../load/receiver.ts'
import { quantile } from '../median.ts'
import type { Fixture } from '../project/fixture.ts'
import type { Project } from '../project/project.ts'
import { subscribe, type Subscription } from '../project/subscriptions.ts'
import { until } from '../project/until.ts'
import { alternate, compare, msText } from '../rounds.ts'
import type { Goal } from './goal.ts'

const endpoints = 10
const hangingEndpoints = 3
const ratePerSecond = 200
/** A hanging attempt is given up after 15 s: longer, so that what comes of that is measured too. */
const timesLonger = 5
const arriveTimeoutMs = 60_000

let runs = 0

/** What healthy endpoints notice of others that take requests and never answer: the p95 from event to arrival. */
export const measureHanging: Goal = async (bench) => {
  const { options } = bench
  const [project, fixture] = [await bench.project(), await bench.fixture()]
  const receiver = startChild<Receiver>('load/receiver.ts')
  const publisher = startChild<PublishEvents>('load/publish-events.ts')
  const { url } = await receiver.ask('start', undefined)
  const side = (hanging: number) => (seconds: number) =>
    healthyP95({ project, fixture, receiver, publisher, url }, hanging, options.quick ? seconds : seconds * timesLonger)
  try {
    const p95s = await alternate(options, { none: side(0), some: side(hangingEndpoints) })
    return { figures: [compare('hanging', p95s.some, p95s.none, msText)], details: p95s }
  } finally {
    await Promise.all([receiver.stop(), publisher.stop()])
  }
}

interface Cast {
  project: Project
  fixture: Fixture
  receiver: Child<Receiver>
  publisher: Child<PublishEvents>
  url: string
}

/** With new subscriptions each time, so that none bears the marks of an earlier round. The same endpoints count in both cases. */
async function healthyP95({ project, fixture, receiver, publisher, url }: Cast, hanging: number, seconds: number) {
  const { organization_id: organizationId, ...stack } = project.stack()
  const bus = busPlaceOf(stack)
  const phoneNumberIds = fixture.numbers.slice(0, endpoints).map(({ phoneNumberId }) => phoneNumberId)
  const pathOf = (n: number) => `/${n}`
  const isHealthy = (n: number) => n >= hangingEndpoints
  const subscriptions: Subscription[] = []
  for (const [n, phoneNumberId] of phoneNumberIds.entries()) {
    const body = { url: `${url}${pathOf(n)}`, events: ['message.sent'], phone_number_ids: [phoneNumberId] }
    subscriptions.push(await subscribe(project, body))
  }
  try {
    await receiver.ask('record', { keep: true })
    await receiver.ask(
      'hang',
      Array.from({ length: hanging }, (_, n) => pathOf(n)),
    )
    const prefix = `hanging-${++runs}`
    const events = await publisher.ask('paced', {
      bus,
      organizationId,
      phoneNumberIds,
      prefix,
      ratePerSecond,
      seconds,
    })
    const healthyPaths = new Set(phoneNumberIds.keys().filter(isHealthy).map(pathOf))
    const healthyEvents = events.filter(({ eventId }) =>
      isHealthy(Number(eventId.split(':')[1]) % phoneNumberIds.length),
    )
    const healthyArrivals = async () =>
      (await receiver.ask('arrivals', undefined)).filter(({ path }) => healthyPaths.has(path))
    const haveArrived = async () => (await healthyArrivals()).length >= healthyEvents.length
    await until('the healthy endpoints have theirs', haveArrived, arriveTimeoutMs)
    const arrivedAt = new Map((await healthyArrivals()).map(({ eventId, at }) => [eventId, at]))
    return quantile(
      healthyEvents.map(({ eventId, at }) => (arrivedAt.get(eventId) ?? Infinity) - at),
      0.95,
    )
  } finally {
    for (const subscription of subscriptions) await subscription.delete()
    await receiver.ask('release', undefined)
  }
}
