import { type Caller, type Handlers, isRpc } from '../api/contract.ts'
import { Problem } from '../api/problem.ts'
import { createLines } from '../work/turns.ts'

/** Of one organization at a time: each may hold one of the service's 10 connections, and others need some. */
const atOnce = 8

/** Runs what an organization's caller asked for when it is its turn; throws when nobody waits for it any more by then. */
export type InTurn = <T>(caller: Pick<Caller, 'organizationId' | 'deadline'>, work: () => Promise<T>) => Promise<T>

/** What one organization asked for, so much of it at a time: the rest waits in its order, and for no other's. */
export function createInTurn(what = 'changes', most = atOnce): InTurn {
  const inLine = createLines(most)
  return ({ organizationId, deadline }, work) =>
    inLine(organizationId, async () => {
      if (deadline <= performance.now()) throw tooMany(what)
      return work()
    })
}

const tooMany = (what: string) =>
  new Problem('service_unavailable', { message: `Too many ${what} are under way: try again.` })

type AnyHandler = (app: unknown, input: unknown, caller: Caller) => Promise<object>

/** The same handlers, with those in turn that change something for a client: where these hold a connection nearly all of their time. */
export function changesInTurn<App, M extends object>(contracts: M, handlers: Handlers<App, M>): Handlers<App, M> {
  const inTurn = createInTurn()
  const waiting =
    (handler: AnyHandler): AnyHandler =>
    (app, input, caller) =>
      inTurn(caller, () => handler(app, input, caller))
  const changes = Object.entries(contracts).filter(([, contract]) => isRpc(contract) && isChange(contract.http?.method))
  const waits = changes.map(([name]) => [name, waiting(handlers[name as keyof typeof handlers] as AnyHandler)])
  return { ...handlers, ...(Object.fromEntries(waits) as Partial<Handlers<App, M>>) }
}

const isChange = (method: string | undefined) => method !== undefined && method !== 'GET'
