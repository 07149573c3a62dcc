import type { listContacts } from '@app/shared/contracts/contacts.ts'
import type { Fragment, Sql } from '@app/shared/database/database.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import { phoneNumberOf } from '@app/shared/values/phone-number.ts'
import { limitTo } from '@app/shared/database/limit-to.ts'
import type { z } from 'zod'
import { contactColumns } from './contacts.ts'
import { type Identity, identitiesMeantBy } from './identities.ts'

/** Which contacts a page is made of. */
interface Asked {
  organizationId: string
  phoneNumberId: string
  query: z.output<(typeof listContacts)['query']>
  /** The last contact of the page before. */
  after: string | null
  rows: number
}

interface Matching {
  first: Fragment
  second?: Fragment
  more?: Fragment
}

/**
 * The queries for a page of contacts c, newest first. Each way to ask for them has its index. Where there is a second one,
 * it is for when the first does not fill the page, and, where `more` stands beside it, that has a row.
 */
export function matchingContacts(sql: Sql, asked: Asked): Matching {
  const { query } = asked
  if (query.phone_number !== undefined || query.bsuid !== undefined) return { first: inOrder(sql, asked) }
  if (query.search === undefined) {
    return { first: query.label_id === undefined ? inOrder(sql, asked) : labelled(sql, asked, query.label_id) }
  }
  const searched = { first: foundAmongNewest(sql, asked), second: found(sql, asked) }
  return query.label_id === undefined ? searched : { ...searched, more: moreLabelled(sql, asked, query.label_id) }
}

const inOrder = (sql: Sql, asked: Asked) => sql`
  select ${contactColumns(sql)} from contacts c
  where ${isListed(sql, asked)} ${isNamed(sql, asked)} ${isFound(sql, asked)} ${hasLabel(sql, asked)}
  order by c.created_at desc, c.id desc ${limitTo(sql, asked.rows)}
`

/** What is common is found here. */
const amongNewest = 2_000
/** The contacts of a label are mostly fewer, and then it is found here, common or not. */
const amongLabelled = 10_000

const foundAmongNewest = (sql: Sql, asked: Asked) => sql`
  select ${contactColumns(sql)} from (${newest(sql, asked)}) c
  where true ${isFound(sql, asked)}
  order by c.created_at desc, c.id desc ${limitTo(sql, asked.rows)}
`

/** Of the number, or of those that have the label. */
function newest(sql: Sql, asked: Asked) {
  const { label_id: labelId } = asked.query
  if (labelId !== undefined) return labelled(sql, { ...asked, rows: amongLabelled }, labelId)
  return sql`
    select ${contactColumns(sql)} from contacts c where ${isListed(sql, asked)}
    order by c.created_at desc, c.id desc ${limitTo(sql, amongNewest)}
  `
}

/** Something rare is found by its pieces. Materialized: else the planner takes it for common, and reads all contacts in order. */
const found = (sql: Sql, asked: Asked) => sql`
  with found as materialized (
    select ${contactColumns(sql)} from contacts c
    where ${isListed(sql, asked)} ${isFound(sql, asked)}
      and contact_grams(c.phone_number_id, contact_text(c.name, c.email, c.username, c.phone_number))
        @> contact_grams(${asked.phoneNumberId}, ${wantedText(sql, asked.query.search ?? '')})
  )
  select ${contactColumns(sql)} from found c where true ${hasLabel(sql, asked)}
  order by c.created_at desc, c.id desc ${limitTo(sql, asked.rows)}
`

// By created_at too, though it is the id's own time: the primary key alone would do for an order by id, and lead past all
// the newer contacts of the organization's other numbers.
const isListed = (sql: Sql, { organizationId, phoneNumberId, after }: Asked) => sql`
  c.organization_id = ${organizationId} and c.phone_number_id = ${phoneNumberId} and c.deleted_at is null
  ${after === null ? sql`` : sql`and (c.created_at, c.id) < (${timeOf(after)}, ${after})`}
`

const hasLabel = (sql: Sql, asked: Asked) =>
  asked.query.label_id === undefined
    ? sql``
    : sql`and (${labelOn(sql, asked, asked.query.label_id)} and l.contact_id = c.id limit 1) is not null`

/** In the order of the label's index, which is that of their ids and so of created_at. */
function labelled(sql: Sql, asked: Asked, labelId: string) {
  const { organizationId, rows } = asked
  return sql`
    select ${contactColumns(sql)}
    from (${labelOn(sql, asked, labelId)} ${isBehind(sql, asked)}) l
    cross join lateral (
      select ${contactColumns(sql)} from contacts c
      where c.organization_id = ${organizationId} and c.id = l.contact_id and c.deleted_at is null limit 1
    ) c
    order by l.contact_id desc ${limitTo(sql, rows)}
  `
}

/** Whether more contacts have the label than were looked at first. */
const moreLabelled = (sql: Sql, asked: Asked, labelId: string) => sql`
  ${labelOn(sql, asked, labelId)} ${isBehind(sql, asked)} offset ${amongLabelled} limit 1
`

const isBehind = (sql: Sql, { after }: Asked) => (after === null ? sql`` : sql`and l.contact_id < ${after}`)

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
      : sql`and c.id in (${namedBy(sql, asked, identitiesMeantBy(phoneNumberOf(phoneNumber, 'phone_number')))})`
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

/** Whether a contact's text has the wanted one in it. */
const isFound = (sql: Sql, { query: { search } }: Asked) =>
  search === undefined
    ? sql``
    : sql`and strpos(contact_text(c.name, c.email, c.username, c.phone_number), ${wantedText(sql, search)}) > 0`

/** One and two characters stand in too many texts to be found anywhere: they find words that begin with them. */
const shortLength = 2

/** The text as `contact_text` would have it, for a short one with the space before a word. */
function wantedText(sql: Sql, search: string) {
  const text = search.trim()
  const isShort = Array.from(text).length <= shortLength
  return sql`substr(contact_text(${text}, null, null, null), ${isShort ? 1 : 2}::int)`
}
