import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { backlogOf, drain } from '../project/backlog.ts'
import { sendPaced } from '../project/send-paced.ts'
import { eventsOfOne, type WholeLives, withWholeLives } from '../project/whole-lives.ts'
import { oneAlone } from '../rounds.ts'
import { costsOfOne, spentBetween } from '../statements.ts'
import type { Goal } from './goal.ts'

const usually = { paused: 60, watched: 40 }
const quickly = { paused: 2, watched: 3 }
const lookEveryMs = 500

/**
 * The whole life of messages at 70 % of what the machine carries, each told to one subscriber that was paused for a minute:
 * how many events does it get for each that comes, until few of the old ones are left?
 */
export const measureCatchUp: Goal = (bench) =>
  withWholeLives(bench, async (lives) => {
    const { statements, ...caughtUp } = await measureOnce(bench, lives)
    const { waited, came, got, left, seconds } = caughtUp
    return {
      figures: [oneAlone('catchUp', [got / came], (value) => value.toFixed(2))],
      notes: [
        `catching up, ${lives.rate} sends a second: ${waited} events waited; in ${seconds.toFixed(0)} s ${came.toFixed(0)} came, ${got} were delivered; ${left} left`,
        ...costsOfOne('a delivery to one that catches up, and all beside', statements, got),
      ],
      details: caughtUp,
    }
  })

/** Events: what waited when it was resumed; what came and was delivered from then on, and how long that was looked at. */
async function measureOnce(bench: Bench, { project, sender, receiver, subscription, rate }: WholeLives) {
  const { recipients } = await bench.fixture()
  const { paused, watched } = bench.options.quick ? quickly : usually
  const waiting = async () => (await backlogOf(project)).deliveries
  await receiver.ask('record', { keep: false })
  await subscription.pause()
  const sending = sendPaced(project, sender, { recipients, ratePerSecond: rate, seconds: paused + watched })
  await sleep(paused * 1000)
  const before = await bench.statements()
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
  const statements = spentBetween(before, await bench.statements())
  await sending
  await drain(project)
  return { waited, came: rate * eventsOfOne * seconds, got, left, seconds, statements }
}
