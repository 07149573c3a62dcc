import { createInTurn, type InTurn } from '@app/shared/bus/changes-in-turn.ts'

/** Of one owner, a network of strangers or an organization, at a time: the rest waits in its order, and nobody else for it. */
const ofOne = 64
/** Of all that wait for their turn. A service takes 4,096 questions at a time, of all gateways and for everything. */
const ofAll = 512

/** Does a look-up in its turn. Throws `service_unavailable` when that does not come before the moment (performance.now). */
export type LookUpTurns = <T>(owner: string, deadline: number, work: () => Promise<T>) => Promise<T>

/**
 * Bounds the questions that are asked before it is known whether whoever asks may: nothing is refused for its owner, but a
 * flood of them waits here, and does not fill the service that everybody needs.
 */
export function createLookUpTurns(): LookUpTurns {
  const [own, all] = [ofOne, ofAll].map((most) => createInTurn('look-ups', most)) as [InTurn, InTurn]
  return (owner, deadline, work) =>
    own({ organizationId: owner, deadline }, () => all({ organizationId: '', deadline }, work))
}
