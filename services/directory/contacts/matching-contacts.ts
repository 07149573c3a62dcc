import type { listContacts } from '@app/shared/contracts/contacts.ts'
import type { Sql } from '@app/shared/database.ts'
import { timeOf } from '@app/shared/ids.ts'
import { phoneNumberOf } from '@app/shared/phone-number.ts'
import type { z } from 'zod'
import { contactColumns } from './contacts.ts'
import { type Identity, identitiesOfPhone } from './identities.ts'

/** Which contacts a page is made of. */
interface Asked {
  organizationId: string
  phoneNumberId: string
  query: z.output<(typeof listContacts)['query']>
  /** The last contact of the page before. */
  after: string | null
  limit: number
}

/** The query for a page of contacts c, newest first. Each way to ask for them has its index. */
export function matchingContacts(sql: Sql, asked: Asked) {
  const { query } = asked
  const isNamed = query.phone_number !== undefined || query.bsuid !== undefined
  return query.label_id === undefined || isNamed ? inOrder(sql, asked) : labelled(sql, asked, query.label_id)
}

function inOrder(sql: Sql, asked: Asked) {
  const { organizationId, phoneNumberId, query, after, limit } = asked
  const hasLabel =
    query.label_id === undefined
      ? sql``
      : sql`and exists (${labelOn(sql, asked, query.label_id)} and l.contact_id = c.id)`
  // By created_at too, though it is the id's own time: the primary key alone would do for an order by id, and lead past
  // all the newer contacts of the organization's other numbers.
  return sql`
    select ${contactColumns(sql)} from contacts c
    where c.organization_id = ${organizationId} and c.phone_number_id = ${phoneNumberId} and c.deleted_at is null
      ${after === null ? sql`` : sql`and (c.created_at, c.id) < (${timeOf(after)}, ${after})`}
      ${isNamed(sql, asked)} ${isFound(sql, asked)} ${hasLabel}
    order by c.created_at desc, c.id desc limit ${limit}
  `
}

/** In the order of the label's index, which is that of their ids and so of created_at. */
function labelled(sql: Sql, asked: Asked, labelId: string) {
  const { organizationId, after, limit } = asked
  return sql`
    select ${contactColumns(sql)}
    from (${labelOn(sql, asked, labelId)} ${after === null ? sql`` : sql`and l.contact_id < ${after}`}) l
    cross join lateral (
      select ${contactColumns(sql)} from contacts c
      where c.organization_id = ${organizationId} and c.id = l.contact_id and c.deleted_at is null ${isFound(sql, asked)}
      limit 1
    ) c
    order by l.contact_id desc limit ${limit}
  `
}

/** The contacts of the number that have the label; none when it is deleted. */
const labelOn = (sql: Sql, { organizationId, phoneNumberId }: Asked, labelId: string) => sql`
  select l.contact_id from contact_labels l
  where l.label_id = ${labelId} and l.phone_number_id = ${phoneNumberId} and l.organization_id = ${organizationId}
    and exists (
      select from labels where organization_id = ${organizationId} and id = ${labelId} and deleted_at is null
    )
`

/** Those that were given the phone number, or whose number the platform writes so; those with the bsuid. */
function isNamed(sql: Sql, asked: Asked) {
  const { phone_number: phoneNumber, bsuid } = asked.query
  const phone =
    phoneNumber === undefined
      ? sql``
      : sql`and c.id in (${namedBy(sql, asked, identitiesOfPhone(phoneNumberOf(phoneNumber, 'phone_number')))})`
  const user =
    bsuid === undefined ? sql`` : sql`and c.id in (${namedBy(sql, asked, [{ kind: 'bsuid', value: bsuid }])})`
  return sql`${phone} ${user}`
}

const namedBy = (sql: Sql, { organizationId, phoneNumberId }: Asked, identities: Identity[]) => sql`
  select i.contact_id from json_to_recordset(${JSON.stringify(identities)}::text::json) as u(kind text, value text)
  cross join lateral (
    select contact_id from identities
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and kind = u.kind and value = u.value
    limit 1
  ) i
`

/** One and two characters stand in too many texts to be found anywhere: they find words that begin with them. */
const shortLength = 2

/** The pieces of the text find candidates by the index; the text itself decides. */
function isFound(sql: Sql, { phoneNumberId, query: { search } }: Asked) {
  if (search === undefined) return sql``
  const text = search.trim()
  const begins = Array.from(text).length <= shortLength
  const wanted = sql`substr(contact_text(${text}, null, null, null), ${begins ? 1 : 2}::int)`
  return sql`
    and contact_grams(c.phone_number_id, contact_text(c.name, c.email, c.username, c.phone_number))
      @> contact_grams(${phoneNumberId}, ${wanted})
    and strpos(contact_text(c.name, c.email, c.username, c.phone_number), ${wanted}) > 0
  `
}
