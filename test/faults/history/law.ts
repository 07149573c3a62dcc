import type { History } from './history.ts'

/** What must hold over a whole history; answers a sentence for each breach. */
export type Law = (history: History) => string[]
