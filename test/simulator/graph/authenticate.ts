import { createHmac } from 'node:crypto'
import type { App } from '../app.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { GraphError, unknownObject } from './graph-error.ts'

/** Who calls: the number whose token it is. */
export interface Caller {
  number: PhoneNumber
}

interface Called {
  headers: { authorization?: string | undefined }
  query: unknown
}

/** Of a call of the Graph API. */
export function authenticate(app: App, called: Called): Caller {
  const caller = bearerOf(app, called)
  checkProof(app, caller.number.accessToken, called.query)
  return caller
}

/** Of a request that is none of the Graph API's, such as for the bytes of a file. */
export function bearerOf(app: App, { headers: { authorization } }: Called): Caller {
  if (!authorization) throw new GraphError(190, { message: 'Authentication Error' })
  const [scheme, token = ''] = authorization.split(' ')
  const number = /^(bearer|oauth)$/i.test(scheme ?? '') ? app.numbers.ofToken(token) : undefined
  if (!number) throw new GraphError(190, { message: 'Invalid OAuth access token - Cannot parse access token' })
  return { number }
}

/** The proof that the call is the app's: wrong ones are always refused, a missing one where the app demands it. */
function checkProof({ options: { appSecret }, settings }: App, token: string, query: unknown) {
  const { appsecret_proof: proof } = (query ?? {}) as { appsecret_proof?: unknown }
  if (proof === undefined) {
    if (!settings.current.require_proof) return
    throw new GraphError(100, { message: 'API calls from the server require an appsecret_proof argument' })
  }
  const expected = createHmac('sha256', appSecret).update(token).digest('hex')
  if (proof !== expected) throw new GraphError(100, { message: 'Invalid appsecret_proof provided in the API argument' })
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
