import type { changeIdentity } from '@app/shared/contracts/directory-changes.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { z } from 'zod'
import type { Origin } from './identity-updated.ts'

export type Change = z.output<(typeof changeIdentity)['body']>

/** The contact that was given its new names by the same change already. */
export async function findDone(
  sql: Sql,
  { organizationId, phoneNumberId }: Origin,
  { id }: Change,
): Promise<string | null> {
  const [row] = await sql<{ contactId: string }[]>`
    select contact_id from identity_changes
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and id = ${id}
  `
  return row?.contactId ?? null
}

/** The number, digits alone, or the user id that a change says is its person's no more. */
export const left = (kind: 'wa_id' | 'bsuid', { previous, current }: Change): string | null =>
  current[kind] !== null && previous[kind] !== current[kind] ? previous[kind] : null

export const noteDone = (
  tx: TransactionSql,
  { organizationId, phoneNumberId }: Origin,
  contactId: string,
  change: Change,
) => tx`
  insert into identity_changes (organization_id, phone_number_id, id, contact_id, left_wa_id, left_bsuid, current, at)
  values (${organizationId}, ${phoneNumberId}, ${change.id}, ${contactId}, ${left('wa_id', change)}, ${left('bsuid', change)},
    ${JSON.stringify(change.current)}::text::json, ${change.at})
  on conflict do nothing
`

interface Latest {
  current: Partial<Change['current']>
  at: string
}

/** What a change that was later, and is made already, has made of the number or the user id that somebody had at some time. */
export async function leftSince(
  sql: Sql | TransactionSql,
  { organizationId, phoneNumberId }: Origin,
  { current: { wa_id: waId = null, bsuid = null }, at }: Latest,
): Promise<Latest | undefined> {
  // Each by its index: with `or`, the plan that is kept reads all changes of the number.
  const by = (hasLeft: Fragment) => sql`
    select current, at from identity_changes
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and ${hasLeft}
      and at > ${at}::text::timestamptz
  `
  const [later] = await sql<{ current: Latest['current']; at: Date }[]>`
    select json_strip_nulls(current) as current, at
    from (${by(sql`left_wa_id = ${waId}`)} union all ${by(sql`left_bsuid = ${bsuid}`)}) later order by at limit 1
  `
  return later && { current: later.current, at: later.at.toISOString() }
}

/** A change as it is to be made by now: others may have been told before that are later. */
export async function followed(sql: Sql, origin: Origin, change: Change): Promise<Change> {
  const later = await leftSince(sql, origin, change)
  if (!later) return change
  const current = { ...change.current, ...later.current }
  // A number that is only told beside a user id.
  const isBeside = change.previous.wa_id === change.current.wa_id
  const previous = isBeside ? { ...change.previous, wa_id: current.wa_id } : change.previous
  return followed(sql, origin, { ...change, previous, current, at: later.at })
}

/** Forgets changes after 8 days, 5,000 at a time; answers how many. */
export async function sweepIdentityChanges(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from identity_changes where (organization_id, phone_number_id, id) in (
      select organization_id, phone_number_id, id from identity_changes
      where changed_at < now() - interval '8 days' limit 5000
    )
  `
  return count
}
