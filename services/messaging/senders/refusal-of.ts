import { batched } from '@app/shared/work/batched.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { FailureName } from '@app/shared/api/problem.ts'
import type { OwnNumber } from './own-number.ts'
import { quotaRest } from './quota.ts'

/** Why a send from the number is refused now, or null; in natural batches. The accept asks again, in its statement. */
export function createRefusalOf(sql: Sql): (number: OwnNumber) => Promise<FailureName | null> {
  const find = async (numbers: OwnNumber[]) => {
    const rows = numbers.map(({ organizationId, phoneNumberId }, n) => ({
      n,
      org: organizationId,
      number: phoneNumberId,
    }))
    const found = await sql<{ refusal: FailureName | null }[]>`
      select case when s.account_id is null then 'resource_not_found'
        when s.refusal is null and not s.attached then 'account_not_connected'
        when s.refusal is null and q.rest <= 0 then 'quota_used_up' else s.refusal end as refusal
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(n int, org text, number text)
      left join lateral (
        select organization_id, account_id, refusal, attached, settings from senders
        where organization_id = u.org and phone_number_id = u.number limit 1
      ) s on true
      left join lateral (${quotaRest(sql)}) q on true
      order by u.n
    `
    return found.map(({ refusal }) => refusal)
  }
  return batched(find, { ownerOf: ({ organizationId }) => organizationId })
}
