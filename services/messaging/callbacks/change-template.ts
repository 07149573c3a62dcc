import { applyTemplateChange } from '../templates/apply-template-change.ts'
import type { ChangeHandler } from './changes.ts'

/** Longer than templates are read for: what a reading that is under way brings may be older than the callback. */
const readingMs = 30_000

/** What the platform tells of a template's review, category, quality and texts. */
export const changeTemplate: ChangeHandler = async ({ sql }, change) => {
  const isKnown = await sql.begin((tx) => applyTemplateChange(tx, change))
  return isKnown || Date.now() - change.receivedAt.getTime() > readingMs
}
