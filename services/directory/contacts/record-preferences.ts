import type { Handler } from '@app/shared/api/contract.ts'
import type { recordPreferences as contract } from '@app/shared/contracts/directory-changes.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { findParties } from '../conversations/find-parties.ts'
import { identitiesOf, mayHaveBeen, waitForTakers } from './identities.ts'
import type { Origin } from './identity-updated.ts'
import { rememberStop } from './remembered-stops.ts'
import { personOf, type Sender } from './sender.ts'
import { untilWon } from '../races.ts'

export const recordPreferences: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { organizationId, traceparent } = caller
  const origin = { organizationId, traceparent, phoneNumberId: params.phone_number_id }
  let words = body.preferences
  let recorded = 0
  return untilWon(async () => {
    const told = await Promise.all(
      words.map(async ({ value, at, ...names }): Promise<Preference | null> => {
        const person = personOf(names, new Date(at))
        if (value === 'stop' && (await rememberStranger(app, person, origin))) return null
        const { contact } = await findParties(app, person, origin, { isTold: true })
        return { organization_id: organizationId, contact_id: contact.id, value, at }
      }),
    )
    const preferences = told.filter((preference) => preference !== null)
    const count = (await setPreferences(app.sql, preferences)) + told.length - preferences.length
    recorded += count
    if (count === words.length) return { recorded }
    const gone = await findGone(app.sql, organizationId, preferences)
    words = words.filter((_, n) => gone.has(told[n]?.contact_id ?? ''))
    return words.length === 0 ? { recorded } : undefined
  })
}

/**
 * Remembers the stop of who is no contact (any more), and makes none for it. False when somebody is: also who was made
 * meanwhile, and was not found to have stopped.
 */
async function rememberStranger(app: App, person: Sender, origin: Origin): Promise<boolean> {
  const isStranger = async () => {
    const { account, contacts } = await app.lookUp({ ...origin, identities: mayHaveBeen(person) })
    if (!account) throw notFound()
    return contacts.length === 0
  }
  if (!(await isStranger())) return false
  await rememberStop(app.sql, { ...origin, identities: identitiesOf(person) }, person.sentAt)
  await waitForTakers(app.sql, origin, mayHaveBeen(person))
  return isStranger()
}

/** Those that were deleted or merged since they were found: their words are still to be recorded. */
async function findGone(sql: Sql, organizationId: string, preferences: Preference[]): Promise<Set<string>> {
  const rows = await sql<{ id: string }[]>`
    select id from contacts
    where organization_id = ${organizationId} and id = any(${preferences.map((each) => each.contact_id)}::text[])
      and deleted_at is not null
  `
  return new Set(rows.map(({ id }) => id))
}

export interface Preference {
  organization_id: string
  contact_id: string
  value: 'stop' | 'resume'
  at: string
}

/**
 * The newest word holds; of two at one moment, `stop`. A contact that was merged meanwhile passes it on. Answers how many
 * contacts changed their mind.
 */
export async function setPreferences(sql: Sql | TransactionSql, preferences: Preference[]): Promise<number> {
  const { count } = await sql`
    with recursive named as (
      select u.contact_id collate "C" as id, u.organization_id, u.value, u.at
      from json_to_recordset(${JSON.stringify(preferences)}::text::json) as u(
        organization_id text, contact_id text, value text, at timestamptz(3))
      union all
      select c.merged_into, n.organization_id, n.value, n.at
      from named n cross join lateral (
        select merged_into from contacts where organization_id = n.organization_id and id = n.id limit 1
      ) c
      where c.merged_into is not null
    ), newest as (
      select distinct on (organization_id, id) organization_id, id, value, at from named
      order by organization_id, id, at desc, value desc
    ), locked as (
      select n.value, n.at, c.organization_id, c.id from newest n cross join lateral (
        select organization_id, id from contacts
        where organization_id = n.organization_id and id = n.id and deleted_at is null
          and (marketing_preference_at is null or marketing_preference_at < n.at
            or marketing_preference_at = n.at and marketing_preference = 'resume' and n.value = 'stop')
        limit 1 for no key update
      ) c
    )
    update contacts c set marketing_preference = l.value, marketing_preference_at = l.at
    from locked l where c.organization_id = l.organization_id and c.id = l.id
  `
  return count
}
