import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { type Identity, mayHaveBeen } from './identities.ts'

/** A name as it is remembered, of a row with `kind` and `value`. */
const hash = (sql: Sql | TransactionSql) => sql`sha256(convert_to(i.kind || ':' || i.value, 'UTF8'))`

/** Of two stops under one name. */
const theLatest = (sql: Sql | TransactionSql) => sql`
  on conflict (organization_id, phone_number_id, name_hash) do update set at = greatest(remembered_stops.at, excluded.at)
`

interface Resumed {
  phoneNumberId: string
  kind: Identity['kind']
  value: string
  at: Date
}

/**
 * Remembers, of contacts that are about to be deleted and are locked, who wanted no marketing messages, or wanted them again.
 * One that said nothing may have a number of somebody who did.
 */
export async function rememberStops(tx: TransactionSql, organizationId: string, contactIds: string[]): Promise<void> {
  await tx`
    insert into remembered_stops (organization_id, phone_number_id, name_hash, at)
    select i.organization_id, i.phone_number_id, ${hash(tx)}, coalesce(c.marketing_preference_at, now())
    from contacts c join identities i on i.organization_id = c.organization_id and i.contact_id = c.id
    where c.organization_id = ${organizationId} and c.id = any(${contactIds}::text[]) and c.marketing_preference = 'stop'
    order by 1, 2, 3
    ${theLatest(tx)}
  `
  const resumed = await tx<Resumed[]>`
    select i.phone_number_id, i.kind, i.value, c.marketing_preference_at as at
    from contacts c join identities i on i.organization_id = c.organization_id and i.contact_id = c.id
    where c.organization_id = ${organizationId} and c.id = any(${contactIds}::text[]) and c.marketing_preference = 'resume'
  `
  if (resumed.length > 0) await forgetStops(tx, organizationId, resumed)
}

/** Also under the other writing of a number, by which a stop would be found. */
const forgetStops = (tx: TransactionSql, organizationId: string, resumed: Resumed[]) => tx`
  with locked as materialized (
    select r.phone_number_id, r.name_hash
    from json_to_recordset(${JSON.stringify(resumed.flatMap(allWritings))}::text::json)
      as i(phone_number_id text, kind text, value text, at timestamptz(3))
    join remembered_stops r on r.organization_id = ${organizationId} and r.phone_number_id = i.phone_number_id
      and r.name_hash = ${hash(tx)} and r.at < i.at
    order by 1, 2 for update of r
  )
  delete from remembered_stops r using locked
  where r.organization_id = ${organizationId} and r.phone_number_id = locked.phone_number_id
    and r.name_hash = locked.name_hash
`

function allWritings({ phoneNumberId, kind, value, at }: Resumed) {
  const names = kind === 'phone' ? mayHaveBeen({ phoneNumber: value, waId: null, bsuid: null }) : [{ kind, value }]
  return names.map((name) => ({ phone_number_id: phoneNumberId, ...name, at }))
}

interface Person {
  organizationId: string
  phoneNumberId: string
  /** All that it may have been known as. */
  identities: Identity[]
}

/** When somebody was remembered to have stopped, as `at`, or null. */
const stopOf = (sql: Sql | TransactionSql, { organizationId, phoneNumberId, identities }: Person) => sql<
  { at: Date | null }[]
>`
  select remembered_stop(${organizationId}, ${phoneNumberId}, ${JSON.stringify(identities)}::text::json) as at
`

/**
 * A contact has names now under which somebody may have stopped: the newest word holds, of two at one moment `stop`. Whoever stops waits
 * for those who take names, so they are to be taken before.
 */
export const mindStop = (tx: TransactionSql, contactId: string, person: Person) => tx`
  update contacts set marketing_preference_at = greatest(marketing_preference_at, s.at), marketing_preference = case
    when s.at >= coalesce(marketing_preference_at, '-infinity') then 'stop' else marketing_preference end
  from (${stopOf(tx, person)}) s
  where organization_id = ${person.organizationId} and id = ${contactId} and s.at is not null
`

/** Somebody who is no contact (any more) is known by other names since `at`: what was said before holds under these, too. */
export const carryStop = (
  sql: Sql,
  { organizationId, phoneNumberId, identities }: Person,
  current: Identity[],
  at: Date,
) => sql`
  insert into remembered_stops (organization_id, phone_number_id, name_hash, at)
  select ${organizationId}, ${phoneNumberId}, ${hash(sql)}, s.at
  from json_to_recordset(${JSON.stringify(current)}::text::json) as i(kind text, value text)
  cross join (${stopOf(sql, { organizationId, phoneNumberId, identities })}) s
  where s.at <= ${at} order by 3
  ${theLatest(sql)}
`

/** Remembers that somebody who is no contact (any more) wanted no marketing messages. */
export const rememberStop = (
  sql: Sql | TransactionSql,
  { organizationId, phoneNumberId, identities }: Person,
  at: string | Date,
) => sql`
  insert into remembered_stops (organization_id, phone_number_id, name_hash, at)
  select ${organizationId}, ${phoneNumberId}, ${hash(sql)}, ${at}
  from json_to_recordset(${JSON.stringify(identities)}::text::json) as i(kind text, value text) order by 3
  ${theLatest(sql)}
`

/** The contacts that have one of the names. */
export async function ownersOf(sql: Sql, { organizationId, phoneNumberId, identities }: Person): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select distinct i.contact_id as id
    from json_to_recordset(${JSON.stringify(identities)}::text::json) as k(kind text, value text)
    join identities i on i.organization_id = ${organizationId} and i.phone_number_id = ${phoneNumberId}
      and i.kind = k.kind and i.value = k.value
    order by 1
  `
  return rows.map(({ id }) => id)
}

/** Whether somebody who is no contact (any more) wanted no marketing messages. */
export async function hasStopped(sql: Sql, person: Person): Promise<boolean> {
  const [row] = await stopOf(sql, person)
  return (row?.at ?? null) !== null
}
