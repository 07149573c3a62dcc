import { type Child, startChild } from '../child.ts'
import type { PublishEvents } from '../load/publish-events.ts'
import type { Receiver } from '../load/receiver.ts'
import { quantile } from '../median.ts'
import type { Fixture } from '../project/fixture.ts'
import type { Project } from '../project/project.ts'
import { subscribe, type Subscription } from '../project/subscriptions.ts'
import { alternate, compare, msText } from '../rounds.ts'
import { eventDelays } from './event-delays.ts'
import type { Goal } from './goal.ts'

const endpoints = 10
const hangingEndpoints = 3
/** A hanging attempt is given up after 15 s: longer, so that what comes of that is measured too. */
const timesLonger = 5

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
  const phoneNumberIds = fixture.numbers.slice(0, endpoints).map(({ phoneNumberId }) => phoneNumberId)
  const pathOf = (n: number) => `/${n}`
  const subscriptions: Subscription[] = []
  for (const [n, phoneNumberId] of phoneNumberIds.entries()) {
    const body = { url: `${url}${pathOf(n)}`, events: ['message.sent'], phone_number_ids: [phoneNumberId] }
    subscriptions.push(await subscribe(project, body))
  }
  try {
    await receiver.ask(
      'hang',
      Array.from({ length: hanging }, (_, n) => pathOf(n)),
    )
    const isHealthy = (n: number) => n >= hangingEndpoints
    const delays = await eventDelays({ project, publisher, receiver, phoneNumberIds }, seconds, isHealthy)
    return quantile(delays, 0.95)
  } finally {
    for (const subscription of subscriptions) await subscription.delete()
    await receiver.ask('release', undefined)
  }
}
