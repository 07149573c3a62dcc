import { type Caller, type Handlers, isRpc } from './contract.ts'
import { Problem } from './problem.ts'

/** Of one organization at a time: each may hold one of the service's 10 connections, and others need some. */
const atOnce = 8

interface Owner {
  running: number
  waiting: (() => void)[]
}

type AnyHandler = (app: unknown, input: unknown, caller: Caller) => Promise<object>

/**
 * The same handlers, of which those that change something for a client wait for the same organization's in their order, and
 * for no other's. For a service whose changes hold a connection nearly all of their time.
 */
export function changesInTurn<App, M extends object>(contracts: M, handlers: Handlers<App, M>): Handlers<App, M> {
  const inTurn = createInTurn()
  const waiting =
    (handler: AnyHandler): AnyHandler =>
    (app, input, caller) =>
      inTurn(caller.organizationId, () => {
        if (caller.deadline <= performance.now())
          throw new Problem('service_unavailable', { message: 'Too many changes are under way: try again.' })
        return handler(app, input, caller)
      })
  const changes = Object.entries(contracts).filter(([, contract]) => isRpc(contract) && isChange(contract.http?.method))
  const waits = changes.map(([name]) => [name, waiting(handlers[name as keyof typeof handlers] as AnyHandler)])
  return { ...handlers, ...(Object.fromEntries(waits) as Partial<Handlers<App, M>>) }
}

const isChange = (method: string | undefined) => method !== undefined && method !== 'GET'

function createInTurn() {
  const owners = new Map<string, Owner>()
  return async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const owner = owners.get(name) ?? { running: 0, waiting: [] }
    owners.set(name, owner)
    if (owner.running < atOnce) owner.running++
    else await new Promise<void>((resolve) => owner.waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = owner.waiting.shift()
      if (next) next()
      else if (--owner.running === 0) owners.delete(name)
    }
  }
}
