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

/** From so many audiences on that have a number, the subscriptions of an organization are read once for all of them. */
const manyAudiences = 16

/** The subscriptions that want what goes to an audience. */
export function matching(sql: Sql | TransactionSql, audiences: Audience[]): Fragment {
  const ofNumbers = Map.groupBy(audiences, ({ organization_id, phone }) => (phone === null ? null : organization_id))
  const together = [...ofNumbers].flatMap(([organization, own]) =>
    organization !== null && own.length >= manyAudiences ? own : [],
  )
  if (together.length === 0) return matchingEach(sql, audiences)
  const others = new Set(audiences).difference(new Set(together))
  return sql`${matchingEach(sql, [...others])} union all ${matchingTogether(sql, together)}`
}

const matched = (sql: Sql | TransactionSql) =>
  sql`a.k, s.id as subscription_id, s.status, s.created_at, s.status = 'active' or ${pausedItself(sql)} as is_tried`

const audiencesOf = (sql: Sql | TransactionSql, audiences: Audience[]) =>
  sql`json_to_recordset(${JSON.stringify(audiences)}::text::json) as a(k int, organization_id text, type text, phone text)`

const isRecordedFor = (sql: Sql | TransactionSql) =>
  sql`(s.status <> 'disabled' or s.disabled_at > now() - interval '30 days')`

const matchingEach = (sql: Sql | TransactionSql, audiences: Audience[]) => sql`
  select ${matched(sql)} from ${audiencesOf(sql, audiences)}
  join subscriptions s on s.organization_id = a.organization_id and a.type = any(s.events) and ${isRecordedFor(sql)}
    and (a.phone is null or s.phone_number_ids is null or s.phone_number_ids = '{}' or a.phone = any(s.phone_number_ids))
`

/** Where each of ten thousand numbers has a subscription, to compare all with each of 256 took half a second. */
const matchingTogether = (sql: Sql | TransactionSql, audiences: Audience[]) => sql`
  select ${matched(sql)} from ${audiencesOf(sql, audiences)} join (
    select s.id, s.organization_id, s.events, s.status, s.disabled_reason, s.created_at, n.phone
    from (select distinct organization_id from ${audiencesOf(sql, audiences)}) o
    join subscriptions s on s.organization_id = o.organization_id and ${isRecordedFor(sql)}
    cross join lateral unnest(
      case when s.phone_number_ids is null or s.phone_number_ids = '{}' then '{null}' else s.phone_number_ids end
    ) n(phone)
    -- Said so that it is looked up in a hash.
    where n.phone is null or (n.phone in (select phone from ${audiencesOf(sql, audiences)})) is true
    offset 0
  ) s on s.organization_id = a.organization_id and a.type = any(s.events) and (s.phone is null or s.phone = a.phone)
`
