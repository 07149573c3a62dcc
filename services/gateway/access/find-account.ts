import { call } from '@app/shared/bus/ask.ts'
import { findAccount } from '@app/shared/contracts/platform.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { Service } from '@app/shared/service/service.ts'
import type { Admitted } from '../exchange/exchange.ts'
import { createLookUpTurns } from '../limits/look-up-turns.ts'
import { createLookUp } from './look-up.ts'

const foundKeptMs = 2_000
/** Short, so that a number that was connected a moment ago is found. */
const absentKeptMs = 200
const maxAccounts = 50_000

const phoneNumberId = /^\d{6,20}$/

export interface Accounts {
  /** Throws `resource_not_found` unless the number of the path is the organization's own. */
  require: (exchange: Admitted, id: string) => void | Promise<void>
}

export function createAccounts(service: Pick<Service, 'request' | 'isConnected'>): Accounts {
  const accounts = createLookUp<boolean>({ max: maxAccounts })
  const inTurn = createLookUpTurns()

  async function ask({ requestId, deadline, traceparent, identity }: Admitted, id: string) {
    const { organizationId, keyId } = identity.value
    const caller = { organizationId, keyId, requestId, deadline, traceparent }
    try {
      await call(service, findAccount, { params: { phone_number_id: id } }, caller)
      return { value: true, keptMs: foundKeptMs }
    } catch (err) {
      if (err instanceof Problem && err.failure === 'resource_not_found') return { value: false, keptMs: absentKeptMs }
      throw err
    }
  }

  return {
    require(exchange, id) {
      if (!phoneNumberId.test(id)) throw notFound()
      const { organizationId } = exchange.identity.value
      const known = accounts.get(`${organizationId}:${id}`, () =>
        inTurn(organizationId, exchange.deadline, () => ask(exchange, id)),
      )
      if (known instanceof Promise) return known.then(({ value }) => check(value))
      check(known.value)
    },
  }
}

function check(isFound: boolean) {
  if (!isFound) throw notFound()
}
