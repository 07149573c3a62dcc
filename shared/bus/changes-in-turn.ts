import { type Caller, type Handlers, isRpc } from '../api/contract.ts'
import { createInTurn } from './in-turn.ts'

type AnyHandler = (app: unknown, input: unknown, caller: Caller) => Promise<object>

/**
 * The same handlers, where those that change something for a client wait their turn. For services where these hold a connection nearly
 * all of their time.
 */
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
