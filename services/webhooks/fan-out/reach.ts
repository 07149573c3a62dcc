import { LRUCache } from 'lru-cache'
import { type EventRow, type Made, statementBytes, statementEvents } from './record-events.ts'

/** What one statement may hold and make: some 0.1 s of work, since it holds rows of the lanes. */
const statementLimits = { bytes: statementBytes, events: statementEvents, deliveries: 2_000 }

/** What an event of a kind that was not seen yet is counted as. */
const guess = 100

/** How many deliveries an event makes, by what the last ones of its organization and type made. */
export interface Reach {
  /** The first of the rows, as many as fit into a statement: one at least, and one only of a kind that was not seen yet. */
  fitting: (rows: EventRow[]) => EventRow[]
  learn: (rows: EventRow[], made: Made[]) => void
  /** They were more than a statement can do in its time: each goes alone, until it is learned anew. */
  areTooMany: (rows: EventRow[]) => void
}

export function createReach(): Reach {
  const known = new LRUCache<string, number>({ max: 50_000 })
  return {
    fitting(rows) {
      const unknown = new Set<string>()
      const sum = { bytes: 0, deliveries: 0 }
      const end = rows.findIndex((row, n) => {
        const kind = kindOf(row.head)
        const reach = known.get(kind)
        const isGuessedAgain = reach === undefined && unknown.has(kind)
        if (reach === undefined) unknown.add(kind)
        sum.bytes += row.payload.length
        sum.deliveries += reach ?? guess
        const { bytes, events, deliveries } = statementLimits
        return n > 0 && (isGuessedAgain || n === events || sum.bytes > bytes || sum.deliveries > deliveries)
      })
      return end === -1 ? rows : rows.slice(0, end)
    },
    learn(rows, made) {
      const counts = new Map(made.map((of) => [kindOf(of), of.count]))
      for (const [kind, { length }] of Map.groupBy(rows, ({ head }) => kindOf(head)))
        known.set(kind, (counts.get(kind) ?? 0) / length)
    },
    areTooMany(rows) {
      for (const { head } of rows) known.set(kindOf(head), Infinity)
    },
  }
}

const kindOf = ({ organization_id, type }: Pick<EventRow['head'], 'organization_id' | 'type'>) =>
  `${organization_id} ${type}`
