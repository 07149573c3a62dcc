import type { App } from '../app.ts'
import { type Caller, mustOwn } from '../graph/authenticate.ts'
import { unknownObject } from '../graph/graph-error.ts'

/** The business account of a path, if the caller's token may use it. @throws 100 subcode 33, or 10 */
export function ownAccount({ numbers }: App, caller: Caller, businessAccountId: string, method: string) {
  const [first] = numbers.all().filter((number) => number.businessAccountId === businessAccountId)
  if (!first) throw unknownObject(method, businessAccountId)
  if (caller.number.businessAccountId !== businessAccountId) mustOwn(caller, first)
  return businessAccountId
}
