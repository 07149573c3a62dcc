import type { Bench } from '../bench.ts'
import type { Figure } from '../figures.ts'

/** What a measurement gives: rows of the table, sentences below it, and for the JSON file all that it saw. */
export interface Result {
  figures: Figure[]
  notes?: string[]
  details?: unknown
}

export type Goal = (bench: Bench) => Promise<Result>
