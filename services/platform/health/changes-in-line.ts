import { createLines, type InLine } from '@app/shared/work/turns.ts'

/** Sessions of the pool's ten that polls may hold to record what has changed. */
export const mostChanging = 4

/**
 * For what polls change: after an outage of the platform that is thousands of numbers, which would keep all sessions from the look-ups of
 * keys, without which nobody is answered. Of an organization one at a time, since the next one would wait for its row.
 */
export function createChangesInLine(): InLine {
  const ofOne = createLines(1)
  const ofAll = createLines(mostChanging)
  return (organizationId, change) => ofOne(organizationId, () => ofAll('', change))
}
