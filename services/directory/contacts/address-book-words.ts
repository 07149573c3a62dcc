import type { importContacts } from '@app/shared/contracts/directory-changes.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { z } from 'zod'
import type { Origin } from './identity-updated.ts'

export type Entry = z.output<(typeof importContacts)['body']>['contacts'][number]

/** The numbers of which this is the last word; their rows are locked, in the order of their keys. */
export async function takeWords(tx: TransactionSql, entries: Entry[], { organizationId, phoneNumberId }: Origin) {
  const rows = await tx<{ waId: string }[]>`
    insert into synced_contacts as s (organization_id, phone_number_id, wa_id, action, at, forgotten_at)
    select ${organizationId}, ${phoneNumberId}, u.wa_id, u.action, u.at, case u.action when 'remove' then now() end
    from json_to_recordset(${JSON.stringify(entries)}::text::json) as u(wa_id text, action text, at timestamptz(3))
    order by u.wa_id
    on conflict (organization_id, phone_number_id, wa_id) do update
      set action = excluded.action, at = excluded.at, forgotten_at = excluded.forgotten_at
      where s.at < excluded.at
    returning wa_id
  `
  return rows.map(({ waId }) => waId)
}

type Scope = Pick<Origin, 'organizationId' | 'phoneNumberId'>

/**
 * The numbers of a contact that is about to be deleted are forgotten with it, once no older word of them can come. Before the
 * contact is locked, as whoever takes words does.
 */
export const forgetWords = (tx: TransactionSql, scope: Scope, contactId: string) =>
  forget(
    tx,
    scope,
    tx`(contact_id = ${contactId} or wa_id = any(array(
      select ltrim(value, '+') from identities
      where organization_id = ${scope.organizationId} and phone_number_id = ${scope.phoneNumberId} and contact_id = ${contactId}
        and kind in ('phone', 'wa_id')
    )))`,
  )

/**
 * The same for a number that a contact gives up and did not get from the address book: nobody has it then, and whoever deletes the contact
 * cannot know of it.
 */
export const forgetWordsOf = (tx: TransactionSql, scope: Scope, contactId: string, waIds: string[]) =>
  forget(tx, scope, tx`wa_id = any(${waIds}::text[]) and contact_id is distinct from ${contactId}`)

const forget = (tx: TransactionSql, { organizationId, phoneNumberId }: Scope, which: Fragment) => tx`
  with locked as (
    select wa_id from synced_contacts
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and forgotten_at is null and ${which}
    order by wa_id for update
  )
  update synced_contacts s set forgotten_at = now() from locked
  where s.organization_id = ${organizationId} and s.phone_number_id = ${phoneNumberId} and s.wa_id = locked.wa_id
`

/**
 * Forgets numbers 8 days after nobody has them any more (callbacks are kept, and driven again, for 7), 5,000 at a time; answers how many.
 * A number that is just being told of is passed over.
 */
export async function sweepWords(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from synced_contacts where ctid = any(array(
      select ctid from synced_contacts where forgotten_at < now() - interval '8 days' limit 5000 for update skip locked
    ))
  `
  return count
}
