import type { History } from './history.ts'
import type { Law } from './law.ts'
import { asOften } from './laws/as-often.ts'
import { counters } from './laws/counters.ts'
import { everyEvent } from './laws/every-event.ts'
import { inLine } from './laws/in-line.ts'
import { inOrder } from './laws/in-order.ts'
import { oneEnding } from './laws/one-ending.ts'
import { oneEventId } from './laws/one-event-id.ts'
import { ownBytes } from './laws/own-bytes.ts'
import { plainAnswers } from './laws/plain-answers.ts'
import { risingStatuses } from './laws/rising-statuses.ts'
import { sameFile } from './laws/same-file.ts'
import { toldOnce } from './laws/told-once.ts'

const laws: Record<string, Law> = {
  'one ending': oneEnding,
  'in order': inOrder,
  'in line': inLine,
  'every event': everyEvent,
  'as often': asOften,
  'one event id': oneEventId,
  'told once': toldOnce,
  'rising statuses': risingStatuses,
  'own bytes': ownBytes,
  counters,
  'same file': sameFile,
  'plain answers': plainAnswers,
  'no complaints': ({ complaints }) => complaints,
}

export const lawNames: string[] = Object.keys(laws)

/** Enough to see what is wrong. */
const shown = 20

/** Every breach of every law, as `law: sentence`. */
export const check = (history: History): string[] =>
  Object.entries(laws).flatMap(([name, law]) => {
    const breaches = law(history).map((sentence) => `${name}: ${sentence}`)
    const more = breaches.length - shown
    return more > 0 ? [...breaches.slice(0, shown), `${name}: and ${more} more`] : breaches
  })
