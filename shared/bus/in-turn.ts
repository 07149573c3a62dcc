import type { Caller } from '../api/contract.ts'
import { Problem } from '../api/problem.ts'
import { createLines } from '../work/turns.ts'

/** Of one organization at a time: each may hold one of the service's 10 connections, and others need some. */
const changesAtOnce = 8

/** Runs work of an owner when it is its turn; throws when that comes after the moment (performance.now) for which somebody waits. */
export type TimelyLines = <T>(owner: string, deadline: number, work: () => Promise<T>) => Promise<T>

/** So much of an owner at a time: the rest waits in its order, and for no other's. */
export function createTimelyLines(what: string, most: number): TimelyLines {
  const inLine = createLines(most)
  return (owner, deadline, work) =>
    inLine(owner, async () => {
      if (deadline <= performance.now()) throw tooMany(what)
      return work()
    })
}

const tooMany = (what: string) =>
  new Problem('service_unavailable', { message: `Too many ${what} are under way: try again.` })

/** Runs what an organization's caller asked for when it is its turn; throws when nobody waits for it any more by then. */
export type InTurn = <T>(caller: Pick<Caller, 'organizationId' | 'deadline'>, work: () => Promise<T>) => Promise<T>

/** What one organization asked for, so much of it at a time. */
export function createInTurn(what = 'changes', most = changesAtOnce): InTurn {
  const line = createTimelyLines(what, most)
  return ({ organizationId, deadline }, work) => line(organizationId, deadline, work)
}
