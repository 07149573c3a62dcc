import { applyTemplateChange } from '../templates/apply-template-change.ts'
import { readWithinMs } from '../templates/readings.ts'
import type { ChangeHandler } from './changes.ts'

/** What a reading that is under way brings may be older than the callback; storing it takes a moment, too. */
const readingMs = readWithinMs + 30_000

/** What the platform tells of a template's review, category, quality and texts. */
export const changeTemplate: ChangeHandler = async ({ sql }, change) => {
  const isKnown = await sql.begin((tx) => applyTemplateChange(tx, change))
  return isKnown || Date.now() - change.receivedAt.getTime() > readingMs
}
