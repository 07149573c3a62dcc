import type { Handler } from '@app/shared/api/contract.ts'
import type { importContacts as contract } from '@app/shared/contracts/directory-changes.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { lockConversations, touchConversations } from '../conversations/touch-conversations.ts'
import { type Entry, takeWords } from './address-book-words.ts'
import { forgetContacts } from './forget-contacts.ts'
import { identitiesOf } from './identities.ts'
import type { Origin } from './identity-updated.ts'
import { insertContactsWithin, type NewContact, newContactIds } from './insert-contacts.ts'
import { nameOf, personOf } from './sender.ts'
import { Overtaken, untilWon } from '../races.ts'

type Apply = Handler<App, typeof contract>

export const importContacts: Apply = (app, input, caller) =>
  app.peopleInTurn(caller, () => takeOver(app, input, caller))

const takeOver: Apply = async (app, { params, body }, caller) => {
  const { organizationId, traceparent } = caller
  const origin = { organizationId, traceparent, phoneNumberId: params.phone_number_id }
  const newest = new Map(
    body.contacts.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at)).map((entry) => [entry.wa_id, entry]),
  )
  let changed: string[] = []
  const attempt = async (tx: TransactionSql) => {
    const [account] = await tx`
      select account_id from accounts
      where organization_id = ${organizationId} and phone_number_id = ${origin.phoneNumberId} and attached
    `
    if (!account) throw notFound()
    const fresh = new Set(await takeWords(tx, [...newest.values()], origin))
    const entries = [...newest.values()].filter((entry) => fresh.has(entry.wa_id))
    const locked = await lockKnown(
      tx,
      entries.map((entry) => entry.wa_id),
      origin,
    )
    const added = entries.filter(({ action }) => action === 'add')
    await makeUnknown(tx, added, origin)
    const named = await nameUnnamed(tx, added, locked, origin)
    const listed = await findListed(
      tx,
      entries.filter(({ action }) => action === 'remove').map((entry) => entry.wa_id),
      origin,
    )
    // With those that are touched in the end: all at once, in the order of their keys.
    await lockConversations(tx, organizationId, [...named, ...listed])
    const removed = await removeSilent(tx, organizationId, listed)
    changed = [...named, ...removed]
    await touchConversations(tx, organizationId, changed)
    return { applied: entries.length }
  }
  return untilWon(() => app.sql.begin(attempt)).finally(() => changed.length > 0 && app.tellChanged(changed))
}

/** The contacts that may be named or go, in the order of their keys, as whoever locks more than one does. */
async function lockKnown(tx: TransactionSql, waIds: string[], origin: Origin) {
  const isOfNumber = ofNumber(tx, origin)
  const rows = await tx<{ id: string }[]>`
    select c.id from (
      select contact_id from (
        select contact_id from identities
        where ${isOfNumber} and kind = 'phone' and value = any(${waIds.map((waId) => `+${waId}`)}::text[])
        union
        select contact_id from identities where ${isOfNumber} and kind = 'wa_id' and value = any(${waIds}::text[])
        union
        select contact_id from synced_contacts where ${isOfNumber} and wa_id = any(${waIds}::text[])
      ) known order by contact_id
    ) known
    cross join lateral (
      select id from contacts where organization_id = ${origin.organizationId} and id = known.contact_id limit 1 for no key update
    ) c
  `
  return new Set(rows.map(({ id }) => id))
}

async function makeUnknown(tx: TransactionSql, added: Entry[], origin: Origin) {
  const { organizationId, phoneNumberId } = origin
  return untilWon(async () => {
    const contacts = await findUnknown(tx, added, origin)
    if (contacts.length === 0) return true
    const ids = await insertContactsWithin(tx, contacts)
    if (!ids) return undefined
    const made = contacts.filter(({ id }) => ids.has(id)).map(({ id, waId }) => ({ id, wa_id: waId }))
    await tx`
      update synced_contacts s set contact_id = u.id
      from json_to_recordset(${JSON.stringify(made)}::text::json) as u(id text, wa_id text)
      where s.organization_id = ${organizationId} and s.phone_number_id = ${phoneNumberId} and s.wa_id = u.wa_id
    `
    return true
  })
}

async function findUnknown(tx: TransactionSql, added: Entry[], origin: Origin): Promise<NewContact[]> {
  const known = await tx<{ waId: string }[]>`
    select u.wa_id from unnest(${added.map((entry) => entry.wa_id)}::text[]) as u(wa_id)
    cross join lateral (${whoHas(tx, origin)}) i
  `
  const knownIds = new Set(known.map(({ waId }) => waId))
  return added
    .filter((entry) => !knownIds.has(entry.wa_id))
    .map((entry) => {
      const person = { ...personOf({ wa_id: entry.wa_id, bsuid: null }, new Date(entry.at)), name: nameOf(entry.name) }
      return { ...person, ...newContactIds(), ...origin, identities: identitiesOf(person), isTold: false }
    })
}

/**
 * Who has the number `u.wa_id`, by its phone first. Two look-ups by the whole key: of names that are one or the other, all of the number are
 * read for each entry while the planner believes that there are few, as in the minute in which an address book comes.
 */
const whoHas = (tx: TransactionSql, origin: Origin) => tx`
  select contact_id from (
    select contact_id, kind from identities where ${ofNumber(tx, origin)} and kind = 'phone' and value = '+' || u.wa_id
    union all
    select contact_id, kind from identities where ${ofNumber(tx, origin)} and kind = 'wa_id' and value = u.wa_id
  ) named order by kind limit 1
`

const ofNumber = (tx: TransactionSql, { organizationId, phoneNumberId }: Origin) =>
  tx`organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}`

/**
 * A name in the address book is for who has none; those given here, or by the person, stay. Answers who got one. Throws `Overtaken` for
 * one that got its number since the contacts were locked: whoever has it locked by now may wait for a number that was just taken.
 */
async function nameUnnamed(tx: TransactionSql, added: Entry[], locked: ReadonlySet<string>, origin: Origin) {
  const { organizationId } = origin
  const names = added.flatMap(({ wa_id: waId, name }) => {
    const cut = nameOf(name)
    return cut === null ? [] : [{ wa_id: waId, name: cut }]
  })
  const unnamed = await tx<{ id: string; name: string }[]>`
    select distinct on (c.id) c.id, u.name
    from json_to_recordset(${JSON.stringify(names)}::text::json) as u(wa_id text, name text)
    cross join lateral (${whoHas(tx, origin)}) i
    cross join lateral (
      select id from contacts
      where organization_id = ${organizationId} and id = i.contact_id and name is null and deleted_at is null
      limit 1
    ) c
  `
  if (unnamed.some(({ id }) => !locked.has(id))) throw new Overtaken()
  await tx`
    update contacts c set name = named.name, updated_at = greatest(c.updated_at, clock_timestamp())
    from json_to_recordset(${JSON.stringify(unnamed)}::text::json) as named(id text, name text)
    where c.organization_id = ${organizationId} and c.id = named.id
  `
  return unnamed.map(({ id }) => id)
}

/** The contacts that the address book made of numbers. */
async function findListed(tx: TransactionSql, waIds: string[], { organizationId, phoneNumberId }: Origin) {
  const rows = await tx<{ id: string }[]>`
    select c.id from synced_contacts s
    cross join lateral (
      select id from contacts where organization_id = ${organizationId} and id = s.contact_id and deleted_at is null limit 1
    ) c
    where s.organization_id = ${organizationId} and s.phone_number_id = ${phoneNumberId} and s.wa_id = any(${waIds}::text[])
  `
  return rows.map(({ id }) => id)
}

/**
 * Contacts that the address book made go with their entry there, unless a message was exchanged. Their conversations are
 * locked: a message that was just being recorded counts. Answers who went.
 */
async function removeSilent(tx: TransactionSql, organizationId: string, listed: string[]) {
  const silent = await tx<{ id: string }[]>`
    select c.id from contacts c
    where c.organization_id = ${organizationId} and c.id = any(${listed}::text[])
      and not exists (
        select from conversations v
        where v.organization_id = c.organization_id and v.contact_id = c.id and v.last_message_at is not null
      )
  `
  const ids = silent.map(({ id }) => id)
  await forgetContacts(tx, organizationId, ids)
  return ids
}
