import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import { pausedItself } from '../attempts/paused.ts'
import type { EventRow } from './record-events.ts'

/** Events of a batch that agree in what decides who gets them are matched as one. */
interface Audience {
  k: number
  organization_id: string
  type: string
  phone: string | null
}

export function numberAudiences(rows: EventRow[]) {
  const numbers = new Map<string, number>()
  const audiences: Audience[] = []
  const events = rows.map(({ head }, n) => {
    const { organization_id, type, phone, subject: _, ...rest } = head
    const name = `${organization_id} ${type} ${phone ?? ''}`
    const k = numbers.get(name) ?? numbers.size
    if (k === numbers.size) audiences.push({ k, organization_id, type, phone })
    numbers.set(name, k)
    return { n: n + 1, k, organization_id, type, ...rest }
  })
  return { events, audiences }
}

/**
 * The subscriptions that want what goes to an audience. Those that name a number are looked up by it: to look through the lists of ten
 * thousand subscriptions took a second.
 */
export const matching = (sql: Sql | TransactionSql, audiences: Audience[]): Fragment => sql`
  select a.k, s.id as subscription_id, s.status, s.created_at, s.status = 'active' or ${pausedItself(sql)} as is_tried
  from json_to_recordset(${JSON.stringify(audiences)}::text::json) as a(k int, organization_id text, type text, phone text)
  cross join lateral (
    select ${columns(sql)} from subscriptions where a.phone is null and organization_id = a.organization_id
    union all
    select ${columns(sql)} from subscriptions
    where a.phone is not null
      and (case when phone_number_ids is null or phone_number_ids = '{}' then organization_id end) = a.organization_id
    union all
    select ${columns(sql)} from subscriptions
    where phone_number_ids @> array[a.phone] and (organization_id = a.organization_id) is true
  ) s
  where a.type = any(s.events) and (s.status <> 'disabled' or s.disabled_at > now() - interval '30 days')
`

const columns = (sql: Sql | TransactionSql) => sql`id, events, status, disabled_reason, disabled_at, created_at`
