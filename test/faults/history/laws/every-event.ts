import type { Delivery, ExpectedEvent, History, Subscription } from '../history.ts'
import type { Law } from '../law.ts'

/** Every event reaches every subscription that matches it, and no other. */
export const everyEvent: Law = (history) => {
  const bySubscription = Map.groupBy(history.deliveries, ({ subscription }) => subscription)
  const missing = history.subscriptions.flatMap((subscription) =>
    missingOf(subscription, bySubscription.get(subscription.id) ?? [], history.expected),
  )
  return [...missing, ...unasked(history), ...partial(history, bySubscription)]
}

const wants = ({ tenant, events, phones, activeFrom }: Subscription, event: ExpectedEvent) =>
  tenant === event.tenant &&
  events.includes(event.type) &&
  (phones === null || event.phone === null || phones.includes(event.phone)) &&
  activeFrom < event.notBefore

function missingOf(subscription: Subscription, deliveries: Delivery[], expected: ExpectedEvent[]) {
  const ids = new Set(deliveries.map(({ type, eventId }) => `${type} ${eventId}`))
  const byType = Map.groupBy(deliveries, ({ type }) => type)
  const has = ({ type, eventId, word }: ExpectedEvent) =>
    eventId === undefined
      ? word !== undefined && (byType.get(type) ?? []).some(({ raw }) => raw.includes(word))
      : ids.has(`${type} ${eventId}`)
  return expected
    .filter((event) => wants(subscription, event) && !has(event))
    .map(({ type, eventId, word }) => `${type} ${eventId ?? word} never came to ${subscription.id}`)
}

function unasked({ deliveries, subscriptions }: History) {
  const asked = new Map(subscriptions.map((one) => [one.id, one]))
  const isUnasked = ({ subscription, type, raw }: Delivery) => {
    const { events = [], phones = null } = asked.get(subscription) ?? {}
    return !events.includes(type) || (phones !== null && !phones.some((phone) => raw.includes(`"${phone}"`)))
  }
  return deliveries
    .filter((delivery) => asked.has(delivery.subscription) && isUnasked(delivery))
    .map(({ subscription, type, eventId }) => `${type} ${eventId} came to ${subscription}, which did not ask for it`)
}

/** What one subscription to everything got, the other one to everything of that tenant must have got too. */
function partial({ subscriptions }: History, bySubscription: Map<string, Delivery[]>) {
  const idsOf = ({ id }: Subscription) => new Set((bySubscription.get(id) ?? []).map(({ eventId }) => eventId))
  const whole = subscriptions.filter(({ phones, activeFrom }) => phones === null && activeFrom === 0)
  return whole.flatMap((one) =>
    whole
      .filter((other) => other !== one && other.tenant === one.tenant)
      .flatMap((other) => {
        const had = idsOf(other)
        const shared = (bySubscription.get(one.id) ?? []).filter(({ type }) => other.events.includes(type))
        const ids = new Set(shared.map(({ eventId }) => eventId))
        return [...ids].filter((id) => !had.has(id)).map((id) => `${id} came to ${one.id} and not to ${other.id}`)
      }),
  )
}
