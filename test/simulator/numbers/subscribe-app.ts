import type { App } from '../app.ts'
import { type Caller, mustOwn } from '../graph/authenticate.ts'
import { unknownObject } from '../graph/graph-error.ts'

/** Subscribes the caller's app to the callbacks of a business account; they come without it too, since there is one app. */
export function subscribeApp({ numbers }: App, caller: Caller, businessAccountId: string) {
  const owned = numbers.all().filter((number) => number.businessAccountId === businessAccountId)
  const [first] = owned
  if (!first) throw unknownObject('post', businessAccountId)
  mustOwn(caller, owned.find(({ phoneNumberId }) => phoneNumberId === caller.number.phoneNumberId) ?? first)
  return { success: true }
}
