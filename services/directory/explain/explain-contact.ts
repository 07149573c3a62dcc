import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainContact as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'

/** What a person is called, and by which names it is known, stays out of it. */
export const explainContact: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const contact = await find(sql, id)
  if (!contact) throw notFound()
  const conversations = await conversationsOf(sql, contact)
  return { history: [...pastOf(contact), standingOf(contact, conversations)] }
}

interface Contact {
  organizationId: string
  id: string
  phoneNumberId: string
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
  mergedInto: string | null
  marketingPreference: 'stop' | 'resume' | null
  marketingPreferenceAt: Date | null
  /** Kinds of the names that it is known by. */
  knownBy: string[]
}

async function find(sql: Sql, id: string) {
  const [found] = await sql<Contact[]>`
    select c.* from (select distinct organization_id from accounts) o
    cross join lateral (
      select organization_id, id, phone_number_id, created_at, updated_at, deleted_at, merged_into, marketing_preference,
        marketing_preference_at, array(
          select distinct kind::text from identities i
          where i.contact_id = contacts.id and i.organization_id = contacts.organization_id order by 1
        ) as known_by
      from contacts where organization_id = o.organization_id and id = ${id} limit 1
    ) c limit 1
  `
  return found
}

interface Conversation {
  id: string
  mergedInto: string | null
}

const conversationsOf = (sql: Sql, { organizationId, id }: Contact) => sql<Conversation[]>`
  select id, merged_into from conversations where contact_id = ${id} and organization_id = ${organizationId} order by id
`

const preferences = { stop: 'wanted no more marketing messages', resume: 'wanted marketing messages again' }

function pastOf(contact: Contact): Moment[] {
  const { organizationId, phoneNumberId, createdAt, deletedAt, mergedInto } = contact
  const { marketingPreference, marketingPreferenceAt } = contact
  const end =
    mergedInto === null ? 'was deleted' : `was found to be the same person as ${mergedInto}, and was merged into it`
  return [
    momentAt(createdAt, 'was made', { organization_id: organizationId, phone_number_id: phoneNumberId }),
    ...(marketingPreference && marketingPreferenceAt
      ? [momentAt(marketingPreferenceAt, preferences[marketingPreference])]
      : []),
    ...(deletedAt ? [momentAt(deletedAt, end)] : []),
  ]
}

function standingOf(contact: Contact, conversations: Conversation[]): Moment {
  const { deletedAt, mergedInto, marketingPreference, knownBy, updatedAt } = contact
  const goingOn = conversations.find((one) => one.mergedInto === null)
  const ended = conversations.filter((one) => one.mergedInto !== null).map(({ id }) => id)
  const details = {
    updated_at: updatedAt,
    ...(goingOn && { conversation_id: goingOn.id }),
    ...(ended.length > 0 && { ended_conversations: ended }),
  }
  if (mergedInto !== null) return standing(`is gone: ${mergedInto} has its names and conversations`, details)
  if (deletedAt) return standing('is deleted: its conversations stay, nothing personal of it does', details)
  const marketing = marketingPreference === 'stop' ? ', and gets no marketing messages (marketing_opted_out)' : ''
  const conversation = goingOn ? '' : ', and has no conversation yet'
  return standing(`is there${conversation}${marketing}`, { ...details, known_by: knownBy })
}
