import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { type Child, startChild } from '../child.ts'
import type { PacedSends } from '../load/paced-sends.ts'
import type { Receiver } from '../load/receiver.ts'
import { backlogOf, drain } from '../project/backlog.ts'
import { control } from '../project/control.ts'
import type { Project } from '../project/project.ts'
import { sendPaced } from '../project/send-paced.ts'
import { subscribe, type Subscription } from '../project/subscriptions.ts'
import { sustained } from '../project/sustained.ts'
import { oneAlone } from '../rounds.ts'
import { addStatements, costsOfOne, spentBetween, type Statement } from '../statements.ts'
import type { Goal } from './goal.ts'

/** Of what the machine carries. */
const share = 0.7
/** In the quick slice, whose few recipients may not be written to more often. */
const quickRate = 20
/** `message.sent`, and three of `message.status`. */
const eventsOfOne = 4
const usually = { paused: 60, watched: 40 }
const quickly = { paused: 2, watched: 3 }
const lookEveryMs = 500

/**
 * The whole life of messages at 70 % of what the machine carries, each told to one subscriber that was paused for a minute:
 * how many events does it get for each that comes, until none of the old ones is left?
 */
export const measureCatchUp: Goal = async (bench) => {
  const project = await bench.project()
  const { simulator_url: simulatorUrl } = project.stack()
  await bench.fixture()
  const [sender, receiver] = [startChild<PacedSends>('load/paced-sends.ts'), startChild<Receiver>('load/receiver.ts')]
  const { url } = await receiver.ask('start', undefined)
  await control(simulatorUrl, 'POST', 'settings', { statuses: ['sent', 'delivered', 'read'] })
  const subscription = await subscribe(project, { url: `${url}/late`, events: ['message.sent', 'message.status'] })
  try {
    const rate = await rateOf(bench, project)
    const rounds: CaughtUp[] = []
    for (let round = 0; round < bench.options.rounds; round++)
      rounds.push(await measureOnce(bench, { project, sender, receiver, subscription, rate }))
    const all = rounds.reduce((sum, { got }) => sum + got, 0)
    const statements = addStatements(rounds.map((round) => round.statements))
    return {
      figures: [
        oneAlone(
          'catchUp',
          rounds.map(({ got, came }) => got / came),
          (value) => value.toFixed(2),
        ),
      ],
      notes: [
        ...rounds.map((round) => noteOf(rate, round)),
        ...costsOfOne('a delivery to one that catches up, and all beside', statements, all),
      ],
      details: rounds,
    }
  } finally {
    await subscription.delete()
    await drain(project)
    await control(simulatorUrl, 'POST', 'settings', { statuses: [] })
    await Promise.all([sender.stop(), receiver.stop()])
  }
}

async function rateOf(bench: Bench, project: Project) {
  if (bench.options.quick) return quickRate
  return Math.max(1, Math.floor((await sustained(bench, project)) * share))
}

interface Parts {
  project: Project
  sender: Child<PacedSends>
  receiver: Child<Receiver>
  subscription: Subscription
  rate: number
}

/** Events: what waited when it was resumed; what came and was delivered from then on, and how long that was looked at. */
interface CaughtUp {
  waited: number
  came: number
  got: number
  left: number
  seconds: number
  statements: Statement[]
}

async function measureOnce(bench: Bench, { project, sender, receiver, subscription, rate }: Parts): Promise<CaughtUp> {
  const { recipients } = await bench.fixture()
  const { paused, watched } = bench.options.quick ? quickly : usually
  const waiting = async () => (await backlogOf(project)).deliveries
  await receiver.ask('record', { keep: false })
  await subscription.pause()
  const sending = sendPaced(project, sender, { recipients, ratePerSecond: rate, seconds: paused + watched })
  await sleep(paused * 1000)
  const statements = await bench.statements()
  const waited = await waiting()
  const since = performance.now()
  const secondsSince = () => (performance.now() - since) / 1000
  await subscription.resume()
  let left = waited
  while (left > rate && secondsSince() < watched) {
    await sleep(lookEveryMs)
    left = await waiting()
  }
  const seconds = secondsSince()
  const { events: got } = await receiver.ask('count', undefined)
  const spent = spentBetween(statements, await bench.statements())
  await sending
  await drain(project)
  return { waited, came: rate * eventsOfOne * seconds, got, left, seconds, statements: spent }
}

const noteOf = (rate: number, { waited, came, got, left, seconds }: CaughtUp) =>
  `catching up, ${rate} sends a second: ${waited} events waited; in ${seconds.toFixed(0)} s ${came.toFixed(0)} came, ${got} were delivered; ${left} left`
