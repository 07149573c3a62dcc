import { applyTemplateChange } from '../templates/apply-template-change.ts'
import type { ChangeHandler } from './changes.ts'

/** What the platform tells of a template's review, category, quality and texts. */
export const changeTemplate: ChangeHandler = async ({ sql }, change) => {
  await sql.begin((tx) => applyTemplateChange(tx, change))
  return true
}
