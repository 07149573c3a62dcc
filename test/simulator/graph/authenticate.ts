import type { App } from '../app.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { GraphError, unknownObject } from './graph-error.ts'

/** Who calls: the number whose token it is. */
export interface Caller {
  number: PhoneNumber
}

export function authenticate({ numbers }: App, authorization: string | undefined): Caller {
  if (!authorization) throw new GraphError(190, { message: 'Authentication Error' })
  const [scheme, token = ''] = authorization.split(' ')
  const number = /^(bearer|oauth)$/i.test(scheme ?? '') ? numbers.ofToken(token) : undefined
  if (!number) throw new GraphError(190, { message: 'Invalid OAuth access token - Cannot parse access token' })
  return { number }
}

/** @throws 10, HTTP 403, for the token of another number */
export function mustOwn(caller: Caller, number: PhoneNumber) {
  if (caller.number.phoneNumberId === number.phoneNumberId) return
  throw new GraphError(10, { message: '(#10) Application does not have permission for this action' })
}

/** The business account of a path, if there is one and the caller may use it. */
export function ownAccount({ numbers }: App, caller: Caller, businessAccountId: string, method: string) {
  const first = numbers.all().find((number) => number.businessAccountId === businessAccountId)
  if (!first) throw unknownObject(method, businessAccountId)
  if (caller.number.businessAccountId !== businessAccountId) mustOwn(caller, first)
  return businessAccountId
}

/** The number of a path, if there is one and it is the caller's. */
export function ownNumber({ numbers }: App, caller: Caller, id: string, method: string) {
  const number = numbers.find(id)
  if (!number || number.status === 'DELETED') throw unknownObject(method, id)
  mustOwn(caller, number)
  return number
}
