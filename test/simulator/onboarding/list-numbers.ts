import type { App } from '../app.ts'
import { type Caller, mustOwn } from '../graph/authenticate.ts'
import { unknownObject } from '../graph/graph-error.ts'
import type { Query } from '../graph/nodes.ts'
import { readFields } from '../numbers/read-number.ts'

/** `GET /{v}/{business_account_id}/phone_numbers`, in pages with cursors. */
export function listNumbers(app: App, caller: Caller, businessAccountId: string, query: Query) {
  const ofAccount = app.numbers.all().filter((number) => number.businessAccountId === businessAccountId)
  const [first] = ofAccount
  if (!first) throw unknownObject('get', businessAccountId)
  if (caller.number.businessAccountId !== businessAccountId) mustOwn(caller, first)
  const shown = ofAccount.filter(({ status }) => status !== 'DELETED')
  const start = query['after'] === undefined ? 0 : Number(Buffer.from(query['after'], 'base64url').toString()) || 0
  const end = start + Math.max(1, Number(query['limit'] ?? 25) || 25)
  const cursorOf = (n: number) => Buffer.from(String(n)).toString('base64url')
  const cursors = { before: cursorOf(start), after: cursorOf(Math.min(end, shown.length)) }
  return {
    data: shown.slice(start, end).map((number) => readFields(app, number, query['fields'])),
    paging: { cursors, ...(end < shown.length && { next: `https://graph.example/next?after=${cursors.after}` }) },
  }
}
