import type { Delivery, ExpectedEvent } from '../history.ts'
import type { Law } from '../law.ts'

/** What happened to one customer comes to each subscription in the order in which it happened; repeats may come later. */
export const inLine: Law = ({ deliveries, expected }) => {
  const lines = Map.groupBy(
    expected.filter(({ line }) => line !== undefined),
    ({ line }) => line,
  )
  const types = new Set(expected.flatMap(({ line, type }) => (line === undefined ? [] : [type])))
  const bySubscription = Map.groupBy(
    deliveries.filter(({ type }) => types.has(type)),
    ({ subscription }) => subscription,
  )
  return [...bySubscription].flatMap(([subscription, came]) =>
    [...lines.values()].flatMap((line) => late(line, came).map((sentence) => `${sentence} to ${subscription}`)),
  )
}

/** Of one line, what came the first time after something that had happened later. */
function late(line: ExpectedEvent[], came: Delivery[]) {
  const isOf =
    ({ type, eventId, word }: ExpectedEvent) =>
    (one: Delivery) =>
      one.type === type &&
      (eventId === undefined ? word !== undefined && one.raw.includes(word) : one.eventId === eventId)
  const nameOf = ({ type, eventId, word }: ExpectedEvent) => `${type} ${eventId ?? word}`
  const arrived = line.map((event) => ({ event, place: came.findIndex(isOf(event)) })).filter(({ place }) => place >= 0)
  return arrived.flatMap(({ event, place }, n) => {
    const before = arrived[n - 1]
    return before && before.place > place ? [`${nameOf(before.event)} came after ${nameOf(event)}`] : []
  })
}
