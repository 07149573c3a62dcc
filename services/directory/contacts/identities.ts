import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { otherWritingOf } from '@app/shared/values/phone-number.ts'
import type { Origin } from './identity-updated.ts'

/** One of the names that a contact is known by on a number. */
export interface Identity {
  kind: 'phone' | 'wa_id' | 'bsuid'
  value: string
}

/** What a phone number may be known as: the number as given, and as the platform writes it. */
const identitiesOfPhone = (phoneNumber: string): Identity[] => [
  { kind: 'phone', value: phoneNumber },
  { kind: 'wa_id', value: phoneNumber.slice(1) },
]

/** What whoever is meant by a phone number may be known as: also by the platform's other way of writing it. */
export function identitiesMeantBy(phoneNumber: string): Identity[] {
  const other = otherWritingOf(phoneNumber)
  const meant = identitiesOfPhone(phoneNumber)
  return other === null ? meant : [...meant, { kind: 'wa_id', value: other.slice(1) }]
}

interface Names {
  phoneNumber: string | null
  waId: string | null
  bsuid: string | null
}

/** All the names in a message; who has one of them has sent it. */
export const identitiesOf = ({ phoneNumber, waId, bsuid }: Names): Identity[] => [
  ...(phoneNumber === null ? [] : identitiesOfPhone(phoneNumber)),
  ...(waId === null || phoneNumber === `+${waId}` ? [] : [{ kind: 'wa_id' as const, value: waId }]),
  ...(bsuid === null ? [] : [{ kind: 'bsuid' as const, value: bsuid }]),
]

/** All that somebody with these names may have been known as: also by their number's other writing, as given or as the platform has it. */
export function mayHaveBeen(names: Names): Identity[] {
  const other = names.phoneNumber === null ? null : otherWritingOf(names.phoneNumber)
  return other === null ? identitiesOf(names) : [...identitiesOf(names), ...identitiesOfPhone(other)]
}

export const isSameIdentity = (a: Identity, b: Identity): boolean => a.kind === b.kind && a.value === b.value

/** A number that a contact gave up may be another person's tomorrow. Null: it gave up none. */
export async function freeNumber(
  tx: TransactionSql,
  { organizationId, phoneNumberId }: Origin,
  contactId: string,
  phoneNumber: string | null,
): Promise<void> {
  if (phoneNumber === null) return
  await tx`
    delete from identities
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and contact_id = ${contactId}
      and (kind = 'phone' and value = ${phoneNumber} or kind = 'wa_id' and value = ${phoneNumber.slice(1)})
  `
}

/** Gives a contact those of the names that are free. In one order, so that no two of such statements wait for each other. */
export const claimNames = (
  sql: Sql | TransactionSql,
  { organizationId, phoneNumberId }: Pick<Origin, 'organizationId' | 'phoneNumberId'>,
  contactId: string,
  names: Identity[],
) => sql`
  insert into identities (organization_id, phone_number_id, kind, value, contact_id)
  select ${organizationId}, ${phoneNumberId}, i.kind, i.value, ${contactId}
  from json_to_recordset(${JSON.stringify(names)}::text::json) as i(kind text, value text)
  order by i.kind, i.value
  on conflict do nothing
`

/**
 * Whether contacts have all of these names. Names move only while their contacts are locked: where these are, it stays true; a number that
 * was given up since it was found may be another person's.
 */
export async function haveNames(
  tx: TransactionSql,
  { organizationId, phoneNumberId }: Pick<Origin, 'organizationId' | 'phoneNumberId'>,
  contacts: { id: string; identities: Identity[] }[],
): Promise<boolean> {
  const names = contacts.flatMap(({ id, identities }) => identities.map((name) => ({ ...name, contact_id: id })))
  const lost = await tx`
    select u.kind from json_to_recordset(${JSON.stringify(names)}::text::json) as u(kind text, value text, contact_id text)
    where not exists (
      select from identities i
      where i.organization_id = ${organizationId} and i.phone_number_id = ${phoneNumberId}
        and i.kind = u.kind and i.value = u.value and i.contact_id = u.contact_id
    )
    limit 1
  `
  return lost.length === 0
}

/** A name that is nobody's contact's. */
export const isNameless = (err: unknown): boolean =>
  err instanceof Error && 'constraint_name' in err && err.constraint_name === 'identities_contact'

/**
 * Waits for whoever is just giving one of these names to a contact, so that whoever looks then finds it. It claims them, for which
 * Postgres waits, and for nobody, which it undoes.
 */
export async function waitForTakers(
  sql: Sql,
  origin: Pick<Origin, 'organizationId' | 'phoneNumberId'>,
  names: Identity[],
): Promise<void> {
  await claimNames(sql, origin, '', names).catch((err: unknown) => {
    if (!isNameless(err)) throw err
  })
}
