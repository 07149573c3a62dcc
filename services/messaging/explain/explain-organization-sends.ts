import type { Handler } from '@app/shared/api/contract.ts'
import { type explainOrganizationSends as contract, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { quotaRest } from '../senders/quota.ts'
import { countedLanes, waitingSends } from './waiting-sends.ts'

/** One whose numbers messaging does not know yet has nothing to tell. */
export const explainOrganizationSends: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const { numbers, quota, rest, waiting, oldest, most } = await find(sql, id)
  if (numbers === 0) return { history: [] }
  const count = waiting === 0 ? 'no message waits' : waiting === 1 ? '1 message waits' : `${waiting} messages wait`
  const what = `${quotaOf(quota, rest)}; ${(most ?? 0) < countedLanes ? '' : 'at least '}${count} to be sent`
  return {
    history: [
      standing(what, {
        ...(quota !== null && {
          messages_per_month: Number(quota),
          messages_left_this_month: Math.max(0, Number(rest)),
        }),
        waiting,
        ...(oldest !== null && { oldest, oldest_accepted_at: timeOf(oldest) }),
      }),
    ],
  }
}

function quotaOf(quota: string | null, rest: string | null): string {
  if (quota === null) return 'it may send without a quota'
  const used = `it has sent ${Number(quota) - Number(rest)} of ${quota} messages of this month (UTC)`
  return Number(rest) > 0 ? used : `${used}: sends are refused until it ends (quota_used_up)`
}

interface Standing {
  numbers: number
  quota: string | null
  rest: string | null
  waiting: number
  /** The first of them that was accepted. */
  oldest: string | null
  /** Of the number at which most wait. */
  most: number | null
}

async function find(sql: Sql, id: string) {
  const [row] = await sql<[Standing]>`
    select count(*)::int as numbers, min((s.settings ->> 'messages_per_month')::bigint) as quota, min(q.rest) as rest,
      coalesce(sum(w.waiting), 0)::int as waiting, min(w.oldest) as oldest, max(w.waiting) as most
    from senders s
    cross join lateral (${quotaRest(sql)}) q
    cross join lateral (${waitingSends(sql)}) w
    where s.organization_id = ${id}
  `
  return row
}
