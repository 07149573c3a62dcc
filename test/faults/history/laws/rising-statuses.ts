import type { Reading } from '../history.ts'
import type { Law } from '../law.ts'

/** A failure that nobody is sure of may still turn out well. */
const rankOf = ({ status, code }: Reading) =>
  status === 'failed' && code === 'delivery_unknown'
    ? 2
    : (({ pending: 1, sent: 3, delivered: 4, read: 5, failed: 6 } as Record<string, number>)[status] ?? 0)

/** Whoever reads a message again never sees it go back. */
export const risingStatuses: Law = ({ readings, endings }) =>
  [...Map.groupBy([...readings, ...endings.values()], ({ messageId }) => messageId)].flatMap(([id, all]) => {
    let highest: Reading | undefined
    const fallen: string[] = []
    for (const reading of all.toSorted((a, b) => a.startedAt - b.startedAt)) {
      // Two readings at the same time may be answered in either order.
      if (highest && reading.startedAt > highest.endedAt && rankOf(reading) < rankOf(highest)) {
        fallen.push(`${id} was ${highest.status}, then ${reading.status}`)
      }
      if (!highest || rankOf(reading) >= rankOf(highest)) highest = reading
    }
    return fallen
  })
