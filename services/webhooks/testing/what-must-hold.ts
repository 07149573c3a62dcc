import { createHmac } from 'node:crypto'
import type { Seen } from './moody-endpoints.ts'
import type { Scene } from './scene.ts'

/** A delivery in the end. */
interface Ended {
  id: string
  subscriptionId: string
  eventId: string
  replayedFrom: string | null
  isDead: boolean
  deathCode: string | null
  attempts: { number: number; status: number | null; errorCode: string | null }[]
}

/** Tries after which a delivery is given up. */
const allTries = 12

/** Everything that should hold once all has settled and does not, each in words with its ids. */
export async function findBroken(scene: Scene): Promise<string[]> {
  const deliveries = await scene.sql<Ended[]>`
    select d.id, d.subscription_id, d.event_id, d.replayed_from, x.id is not null as is_dead, x.error_code as death_code,
      (
        select coalesce(json_agg(
          json_build_object('number', number, 'status', response_status, 'errorCode', error_code) order by number
        ), '[]') from attempts where delivery_id = d.id
      ) as attempts
    from deliveries d left join dead_deliveries x on x.id = d.id order by d.id
  `
  const seen = Map.groupBy(scene.endpoints.seen, ({ deliveryId }) => deliveryId)
  // An endpoint that is gone disables its subscription.
  for (const { id, subscriptionId } of deliveries) {
    if (seen.get(id)?.some(({ status }) => status === 410)) scene.causes.disabled.add(subscriptionId)
  }
  const about = deliveries.flatMap((delivery) =>
    [
      ...wrongAttempts(delivery, seen.get(delivery.id) ?? [], scene),
      ...wrongEnd(delivery, seen.get(delivery.id) ?? [], scene),
    ].map((what) => `${delivery.id} to ${delivery.subscriptionId}: ${what}`),
  )
  return [
    ...about,
    ...wrongRequests(scene, new Map(deliveries.map((delivery) => [delivery.id, delivery]))),
    ...wrongOrder(scene, deliveries),
    ...doubles(deliveries),
    ...wrongDeaths(deliveries),
    ...(await wrongReplays(scene, deliveries)),
    ...(await wrongAnswers(scene, deliveries)),
  ]
}

/** Calls of one attempt: those before the last met the end of a kept connection. */
const mostCalls = 3

/** Attempts are numbered without gaps, and stand there as their endpoint saw them. */
function* wrongAttempts({ id, attempts }: Ended, seen: Seen[], { causes }: Scene) {
  if (attempts.some(({ number }, n) => number !== n + 1))
    yield `attempts ${attempts.map(({ number }) => number).join()}`
  const calls = Map.groupBy(seen, ({ number }) => number)
  for (const [number, made] of calls) {
    if (made.length > mostCalls || made.slice(0, -1).some(({ status }) => status !== null))
      yield `attempt ${number} came ${made.length} times`
    if (!attempts.some((attempt) => attempt.number === number)) yield `attempt ${number} came and is not recorded`
  }
  for (const { number, status, errorCode } of attempts) {
    const call = calls.get(number)?.at(-1)
    if (errorCode === 'interrupted') {
      if (!causes.abandoned.has(id)) yield `attempt ${number} is called interrupted, and no process died`
    } else if (call?.status !== status)
      yield `attempt ${number} was answered ${call?.status}, and ${status} is recorded`
  }
}

const wasAccepted = ({ status }: Ended['attempts'][number]) => status === 200

/** It succeeded, or is dead for a reason that there was. */
function* wrongEnd({ subscriptionId, isDead, deathCode, attempts }: Ended, seen: Seen[], { causes }: Scene) {
  if (!isDead) {
    if (!attempts.some(wasAccepted)) yield 'it is neither delivered nor dead'
    return
  }
  const wasGone = seen.some(({ status }) => status === 410)
  const hadCause =
    deathCode === 'gone'
      ? wasGone
      : deathCode === 'subscription_deleted'
        ? causes.deleted.has(subscriptionId)
        : deathCode === 'subscription_disabled'
          ? causes.disabled.has(subscriptionId)
          : deathCode === null && attempts.length >= allTries
  if (!hadCause) yield `it is dead: ${deathCode ?? 'tried often enough'}, after ${attempts.length} attempts`
}

/** Every request has the bytes that were emitted, and a signature that its receiver can check. */
function* wrongRequests({ endpoints, tenants, secrets }: Scene, deliveries: Map<string, Ended>) {
  const payloads = new Map(tenants.flatMap((tenant) => [...tenant.payloads]))
  for (const { deliveryId, number, eventId, signature, body } of endpoints.seen) {
    const delivery = deliveries.get(deliveryId)
    const name = `request ${deliveryId} ${number}`
    if (delivery?.eventId !== eventId) yield `${name} is of ${eventId}, its delivery of ${delivery?.eventId}`
    if (payloads.get(eventId) !== body.toString()) yield `${name} has another payload than was emitted`
    const [, time = '', hex] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(signature) ?? []
    const key = secrets.get(delivery?.subscriptionId ?? '') ?? ''
    if (createHmac('sha256', key).update(`${time}.`).update(body).digest('hex') !== hex) {
      yield `${name} has the signature ${signature}`
    }
  }
}

/** What was delivered of a line came first in the order in which it was emitted. */
function* wrongOrder({ endpoints, tenants }: Scene, deliveries: Ended[]) {
  const arrivals = new Map<string, number>()
  for (const [n, { deliveryId }] of endpoints.seen.entries()) {
    if (!arrivals.has(deliveryId)) arrivals.set(deliveryId, n)
  }
  const delivered = deliveries.filter(({ isDead, replayedFrom }) => !isDead && replayedFrom === null)
  const ofSubscription = Map.groupBy(delivered, ({ subscriptionId }) => subscriptionId)
  for (const { ids } of tenants.flatMap(({ lines }) => [...lines.values()])) {
    for (const [subscriptionId, own] of ofSubscription) {
      const inLine = own.filter(({ eventId }) => ids.includes(eventId))
      const emitted = inLine.toSorted((a, b) => ids.indexOf(a.eventId) - ids.indexOf(b.eventId))
      const places = emitted.map(({ id }) => arrivals.get(id) ?? -1)
      if (places.some((place, n) => n > 0 && place < (places[n - 1] ?? 0))) {
        yield `a line came to ${subscriptionId} in the order ${places.join()}`
      }
    }
  }
}

/** An event goes to a subscription once, but for replays. */
function* doubles(deliveries: Ended[]) {
  const originals = deliveries.filter(({ replayedFrom }) => replayedFrom === null)
  const byTarget = Map.groupBy(originals, ({ subscriptionId, eventId }) => `${subscriptionId} ${eventId}`)
  for (const [target, { length }] of byTarget) if (length > 1) yield `${target} has ${length} deliveries`
}

/** What was accepted is not dead, unless it was replayed before that was known. */
function* wrongDeaths(deliveries: Ended[]) {
  const replayed = new Set(deliveries.map(({ replayedFrom }) => replayedFrom))
  for (const { id, isDead, attempts } of deliveries) {
    if (isDead && attempts.some(wasAccepted) && !replayed.has(id)) yield `${id} is dead, and was accepted`
  }
}

/** Replays are over, and what they count is there. */
async function wrongReplays({ sql, causes: { replayed, abandoned } }: Scene, deliveries: Ended[]) {
  const replays = await sql<
    {
      id: string
      status: string
      source: string
      matched: number
      enqueued: number
      succeeded: number
      failed: number
    }[]
  >`select id, status, source, matched, enqueued, succeeded, failed from replays`
  const wrong = replays.filter(
    ({ status, source, matched, enqueued, succeeded, failed }) =>
      enqueued !== succeeded + failed ||
      !['completed', 'cancelled'].includes(status) ||
      // What turns out to have been accepted is dead no more.
      (status === 'completed' && source === 'dead' && enqueued < matched - abandoned.size),
  )
  const made = deliveries.filter(({ id, replayedFrom }) => replayedFrom !== null && !replayed.has(id))
  const dead = made.filter(({ isDead }) => isDead).length
  const found = { succeeded: made.length - dead, failed: dead }
  const counted = {
    succeeded: replays.reduce((sum, { succeeded }) => sum + succeeded, 0),
    failed: replays.reduce((sum, { failed }) => sum + failed, 0),
  }
  const missing = [...replayed].filter((id) => !deliveries.some((delivery) => delivery.id === id))
  return [
    ...wrong.map((replay) => `replay ${JSON.stringify(replay)}`),
    ...missing.map((id) => `${id} was answered as a replay and is not there`),
    ...(JSON.stringify(found) === JSON.stringify(counted)
      ? []
      : [`replays count ${JSON.stringify(counted)}, and there are ${JSON.stringify(found)}`]),
  ]
}

/** What an organization is told of its newest deliveries is what stands there. */
async function wrongAnswers({ tenants }: Scene, deliveries: Ended[]) {
  const byId = new Map(deliveries.map((delivery) => [delivery.id, delivery]))
  const told = await Promise.all(
    tenants.flatMap(({ instances }) => instances.slice(0, 1).map((instance) => instance.deliveries())),
  )
  return told.flat().flatMap(({ id, attempt_count, status }) => {
    const { attempts = [], isDead } = byId.get(id) ?? {}
    const last = isDead ? attempts.at(-1) : attempts.findLast(wasAccepted)
    const isRight = attempt_count === (last?.number ?? 0) && status === (isDead ? 'dead' : 'succeeded')
    return isRight ? [] : [`${id} is told as ${status} after ${attempt_count} attempts of ${attempts.length}`]
  })
}
