import { mostRecent } from '@app/shared/work/most-recent.ts'
import { type EventRow, type Made, statementBytes, statementEvents } from './record-events.ts'

/** What one statement may hold and make: some 0.1 s of work, since it holds rows of the lanes. */
const statementLimits = { bytes: statementBytes, events: statementEvents, deliveries: 2_000 }

/** What an event of a kind that was not seen yet is counted as, at most. */
const mostGuessed = 100
/** The share of the guess before that stays when a new kind makes less. */
const keptGuess = 7 / 8

/** How many deliveries an event makes, by what the last ones of its organization and type made. */
export interface Reach {
  /**
   * Rows for a statement, one at least, in their order: as many as fit into it, and one only of a kind that was not seen yet. Behind its
   * next one all of its organization wait, and nobody else's.
   */
  fitting: (rows: EventRow[]) => EventRow[]
  learn: (rows: EventRow[], made: Made[]) => void
  /** They were more than a statement can do in its time: each goes alone, until it is learned anew. */
  areTooMany: (rows: EventRow[]) => void
}

/**
 * A kind that was not seen yet is taken for what such kinds have made lately: of thousands of organizations that have a subscription or two
 * each, as many events go together as of one.
 */
export function createReach(): Reach {
  const known = mostRecent<string, number>(50_000)
  let guess = mostGuessed

  function learnOne(kind: string, reach: number) {
    if (!known.has(kind)) guess = Math.min(mostGuessed, Math.max(reach, guess * keptGuess))
    known.set(kind, reach)
  }

  return {
    fitting(rows) {
      const unknown = new Set<string>()
      const behind = new Set<string>()
      const sum = { bytes: 0, deliveries: 0 }
      const fits: EventRow[] = []
      const { bytes, events, deliveries } = statementLimits
      for (const row of rows) {
        const kind = kindOf(row.head)
        const reach = known.get(kind)
        if (reach === undefined && unknown.has(kind)) behind.add(row.head.organization_id)
        if (behind.has(row.head.organization_id)) continue
        if (reach === undefined) unknown.add(kind)
        sum.bytes += row.payload.length
        sum.deliveries += reach ?? guess
        if (fits.length > 0 && (fits.length === events || sum.bytes > bytes || sum.deliveries > deliveries)) break
        fits.push(row)
      }
      return fits
    },
    learn(rows, made) {
      const counts = new Map(made.map((of) => [kindOf(of), of.count]))
      for (const [kind, { length }] of Map.groupBy(rows, ({ head }) => kindOf(head)))
        learnOne(kind, (counts.get(kind) ?? 0) / length)
    },
    areTooMany(rows) {
      for (const { head } of rows) known.set(kindOf(head), Infinity)
    },
  }
}

const kindOf = ({ organization_id, type }: Pick<EventRow['head'], 'organization_id' | 'type'>) =>
  `${organization_id} ${type}`
