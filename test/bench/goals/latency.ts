import { startChild } from '../child.ts'
import type { FigureName } from '../figures.ts'
import type { PacedSends } from '../load/paced-sends.ts'
import type { Arrival, Receiver } from '../load/receiver.ts'
import { quantile } from '../median.ts'
import { drain } from '../project/backlog.ts'
import type { Fixture } from '../project/fixture.ts'
import type { Project } from '../project/project.ts'
import { sendPaced } from '../project/send-paced.ts'
import { subscribe } from '../project/subscriptions.ts'
import { takenByUpstream } from '../project/taken-by-upstream.ts'
import { until } from '../project/until.ts'
import { msText, oneAlone } from '../rounds.ts'
import type { Goal } from './goal.ts'

const ratePerSecond = 200
const arriveTimeoutMs = 30_000

interface Passage {
  /** From the moment at which a send was asked for to that at which the platform took it. */
  toUpstreamMs: number[]
  /** From the time in the event, which is taken in its transaction just before the commit, to the request's first bytes. */
  toSubscriberMs: number[]
}

/** At 200 sends a second, how long until the platform has a message, and until a subscriber has its `message.sent`. */
export const measureLatency: Goal = async (bench) => {
  const { options } = bench
  const [project, fixture] = [await bench.project(), await bench.fixture()]
  const sender = startChild<PacedSends>('load/paced-sends.ts')
  const receiver = startChild<Receiver>('load/receiver.ts')
  const { url } = await receiver.ask('start', undefined)
  const subscription = await subscribe(project, { url: `${url}/latency`, events: ['message.sent'] })
  try {
    const passages: Passage[] = []
    if (!options.quick) await pass(project, fixture, sender, receiver, 2)
    for (let round = 0; round < options.rounds; round++)
      passages.push(await pass(project, fixture, sender, receiver, options.seconds))
    const row = (name: FigureName, values: (passage: Passage) => number[], of: number) =>
      oneAlone(
        name,
        passages.map((passage) => quantile(values(passage), of)),
        msText,
      )
    return {
      figures: [
        row('upstreamP50', ({ toUpstreamMs }) => toUpstreamMs, 0.5),
        row('upstreamP99', ({ toUpstreamMs }) => toUpstreamMs, 0.99),
        row('eventP50', ({ toSubscriberMs }) => toSubscriberMs, 0.5),
        row('eventP99', ({ toSubscriberMs }) => toSubscriberMs, 0.99),
      ],
      details: passages,
    }
  } finally {
    await subscription.delete()
    await Promise.all([sender.stop(), receiver.stop()])
  }
}

type Sender = ReturnType<typeof startChild<PacedSends>>
type Subscriber = ReturnType<typeof startChild<Receiver>>

async function pass(
  project: Project,
  { recipients }: Fixture,
  sender: Sender,
  receiver: Subscriber,
  seconds: number,
): Promise<Passage> {
  await receiver.ask('record', { keep: true })
  const sends = await sendPaced(project, sender, { recipients, ratePerSecond, seconds })
  const haveArrived = async () => (await receiver.ask('count', undefined)).events >= sends.length
  await until('every message.sent has arrived', haveArrived, arriveTimeoutMs)
  await drain(project)
  const takenAt = await takenByUpstream(
    project,
    recipients.slice(0, sends.length).map(({ phoneNumberId }) => phoneNumberId),
  )
  return {
    toUpstreamMs: sends.map((send) => takenAt(send) - send.askedAt),
    toSubscriberMs: (await receiver.ask('arrivals', undefined)).map(delayOf),
  }
}

const delayOf = ({ at, createdAt }: Arrival) => at - (createdAt ?? NaN)
