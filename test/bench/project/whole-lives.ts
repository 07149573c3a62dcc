import { setTimeout as sleep } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { type Child, startChild } from '../child.ts'
import type { PacedSends } from '../load/paced-sends.ts'
import type { Receiver } from '../load/receiver.ts'
import { load, writeRequests } from '../load/wrk.ts'
import { drain } from './backlog.ts'
import { control } from './control.ts'
import type { Project } from './project.ts'
import { sendRequests } from './send-requests.ts'
import { subscribe, type Subscription } from './subscriptions.ts'

/** Of what the machine carries. */
const share = 0.7
const connections = 64
/** In the quick slice, whose few recipients may not be written to more often. */
const quickRate = 20
const quietMs = 1_000
/** `message.sent`, and three of `message.status`. */
export const eventsOfOne = 4

/** Whole lives of messages: sent, three statuses, each told to one subscriber. */
export interface WholeLives {
  project: Project
  sender: Child<PacedSends>
  receiver: Child<Receiver>
  subscription: Subscription
  /** Sends a second that the machine carries, counted until the last delivery of what was accepted has been made. */
  most: number
  /** 70 % of them. */
  rate: number
}

/** Measures such lives at their rate, once nothing is left of those by which it was found. */
export async function withWholeLives<T>(bench: Bench, measure: (lives: WholeLives) => Promise<T>): Promise<T> {
  const project = await bench.project()
  const { simulator_url: simulatorUrl } = project.stack()
  await bench.fixture()
  const [sender, receiver] = [startChild<PacedSends>('load/paced-sends.ts'), startChild<Receiver>('load/receiver.ts')]
  const { url } = await receiver.ask('start', undefined)
  await control(simulatorUrl, 'POST', 'settings', { statuses: ['sent', 'delivered', 'read'] })
  const subscription = await subscribe(project, { url, events: ['message.sent', 'message.status'] })
  try {
    const most = await sustained(bench, project)
    await takeAll(project, receiver)
    const rate = bench.options.quick ? quickRate : Math.max(1, Math.floor(most * share))
    return await measure({ project, sender, receiver, subscription, most, rate })
  } finally {
    await subscription.delete()
    await control(simulatorUrl, 'POST', 'settings', { statuses: [] })
    await Promise.all([sender.stop(), receiver.stop()])
  }
}

async function sustained({ options, folder, fixture }: Bench, project: Project) {
  const { base_url: baseUrl, api_key: key } = project.stack()
  const { recipients } = await fixture()
  const requests = writeRequests(folder, 'whole-lives', new URL(baseUrl).origin, sendRequests(recipients, key, true))
  if (!options.quick) {
    await load(requests, connections, 2)
    await drain(project)
  }
  const startedAt = performance.now()
  const { requests: sent } = await load(requests, connections, options.quick ? 1 : 2 * options.seconds)
  await drain(project)
  return sent / ((performance.now() - startedAt) / 1000)
}

/** Until a second brings nothing more: the platform tells statuses a while after a send, and before that nothing waits here. */
export async function takeAll(project: Project, receiver: Child<Receiver>): Promise<number> {
  let taken = 0
  for (;;) {
    await sleep(quietMs)
    await drain(project)
    const more = await receiver.ask('take', undefined)
    if (more === 0) return taken
    taken += more
  }
}
