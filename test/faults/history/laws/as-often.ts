import type { Law } from '../law.ts'

/** What happened several times is told as often, to each subscription that was there all the time. */
export const asOften: Law = ({ deliveries, subscriptions, tallies }) =>
  subscriptions
    .filter(({ activeFrom }) => activeFrom === 0)
    .flatMap(({ id, tenant, events, phones }) =>
      tallies
        .filter((one) => one.tenant === tenant && events.includes(one.type) && (phones?.includes(one.phone) ?? true))
        .flatMap(({ type, word, times }) => {
          const came = deliveries.filter(
            (one) => one.subscription === id && one.type === type && one.raw.includes(word),
          )
          const told = new Set(came.map(({ eventId }) => eventId)).size
          return told === times ? [] : [`${type} ${word} came ${told} times to ${id}, and happened ${times} times`]
        }),
    )
