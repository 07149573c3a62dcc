import type { Caller } from '../api/contract.ts'
import { Problem } from '../api/problem.ts'
import { createLines } from '../work/turns.ts'

/** For one organization at a time: each may hold one of the service's 10 connections, and others need some. */
const changesAtOnce = 8

/** Runs work of an owner in its turn. Throws `service_unavailable` if its turn comes after the deadline (a `performance.now()` time). */
export type TimelyLines = <T>(owner: string, deadline: number, work: () => Promise<T>) => Promise<T>

/** Runs at most `most` works of an owner at a time; further ones wait in their order. Owners wait for each other only with a limit `inAll`. */
export function createTimelyLines(what: string, most: number, inAll?: number): TimelyLines {
  const inLine = createLines(most, inAll)
  return (owner, deadline, work) =>
    inLine(owner, async () => {
      if (deadline <= performance.now()) throw tooMany(what)
      return work()
    })
}

export const tooMany = (what: string): Problem =>
  new Problem('service_unavailable', { message: `Too many ${what} are under way: try again.` })

/** Runs work of a caller's organization in its turn. Throws `service_unavailable` if the caller's deadline is over by then. */
export type InTurn = <T>(caller: Pick<Caller, 'organizationId' | 'deadline'>, work: () => Promise<T>) => Promise<T>

/** Runs at most `most` works of one organization at a time, and `inAll` beside each one's first; `what` names them in the error. */
export function createInTurn(what = 'changes', most = changesAtOnce, inAll?: number): InTurn {
  const line = createTimelyLines(what, most, inAll)
  return ({ organizationId, deadline }, work) => line(organizationId, deadline, work)
}
