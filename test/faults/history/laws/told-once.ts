import type { Law } from '../law.ts'

/** A subscription is told of an event by one delivery, however often that is tried. */
export const toldOnce: Law = ({ deliveries }) =>
  [...Map.groupBy(deliveries, ({ subscription, eventId }) => `${eventId} came to ${subscription}`)].flatMap(
    ([what, all]) => {
      const ids = new Set(all.map(({ id }) => id))
      return ids.size > 1 ? [`${what} as ${[...ids].join(' and ')}`] : []
    },
  )
