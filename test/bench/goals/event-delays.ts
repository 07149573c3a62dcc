import { busPlaceOf } from '@app/deploy/stack/stack-file.ts'
import type { Child } from '../child.ts'
import type { PublishEvents } from '../load/publish-events.ts'
import type { Receiver } from '../load/receiver.ts'
import type { Project } from '../project/project.ts'
import { until } from '../project/until.ts'

const ratePerSecond = 200
const arriveTimeoutMs = 60_000

let runs = 0

export interface EventStream {
  project: Project
  publisher: Child<PublishEvents>
  /** Keeps its arrivals. */
  receiver: Child<Receiver>
  /** The numbers take turns; each has one subscription. */
  phoneNumberIds: string[]
}

/** 200 events a second: what those of the numbers that count (by their place) took from publish to arrival, in milliseconds. */
export async function eventDelays(
  { project, publisher, receiver, phoneNumberIds }: EventStream,
  seconds: number,
  counts: (number: number) => boolean = () => true,
): Promise<number[]> {
  const { organization_id: organizationId, ...stack } = project.stack()
  await receiver.ask('record', { keep: true })
  const prefix = `delays-${++runs}`
  const stream = { bus: busPlaceOf(stack), organizationId, phoneNumberIds, prefix, ratePerSecond, seconds }
  const events = (await publisher.ask('paced', stream)).filter(({ eventId }) =>
    counts(Number(eventId.split(':')[1]) % phoneNumberIds.length),
  )
  const wanted = new Set(events.map(({ eventId }) => eventId))
  const arrived = async () => (await receiver.ask('arrivals', undefined)).filter(({ eventId }) => wanted.has(eventId))
  const haveArrived = async () => new Set((await arrived()).map(({ eventId }) => eventId)).size >= wanted.size
  await until('the events have arrived', haveArrived, arriveTimeoutMs)
  // The first arrival counts.
  const arrivedAt = new Map((await arrived()).toReversed().map(({ eventId, at }) => [eventId, at]))
  return events.map(({ eventId, at }) => (arrivedAt.get(eventId) ?? Infinity) - at)
}
