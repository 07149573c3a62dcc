import { createTimelyLines, type TimelyLines } from '@app/shared/bus/in-turn.ts'

/** Of one owner, a network of strangers or an organization, at a time: the rest waits in its order, and nobody else for it. */
const ofOne = 64
/** Of all that wait for their turn. A service takes 4,096 questions at a time, of all gateways and for everything. */
const ofAll = 512

/**
 * Bounds the questions that are asked before it is known whether whoever asks may: nothing is refused for its owner, but a
 * flood of them waits here, and does not fill the service that everybody needs.
 */
export function createLookUpTurns(): TimelyLines {
  const own = createTimelyLines('look-ups', ofOne)
  const all = createTimelyLines('look-ups', ofAll)
  return (owner, deadline, work) => own(owner, deadline, () => all('', deadline, work))
}
