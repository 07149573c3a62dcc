import type { Handler } from '../api/contract.ts'
import { type explainRecordedEventOf, type Moment, momentAt, standing } from '../contracts/explain.ts'
import { isCancelled, type Sql } from '../database/database.ts'
import { timeOf } from '../values/ids.ts'

/** Between the time in an event's id and that of its transaction, by the clocks of two hosts. */
const apartMs = 10 * 60_000

interface Recorded {
  organizationId: string
  /** Null: the event is for services alone. */
  type: string | null
  phone: string | null
  /** A subscription that does not get it. */
  except: string | null
  createdAt: Date
  publishedAt: Date | null
  refused: string | null
}

/** What the outbox, which goes back four days, knows of an event. It has no index of ids, and is read around the time of this one. */
export const explainRecordedEvent: Handler<
  { name: string; sql: Sql },
  ReturnType<typeof explainRecordedEventOf>
> = async ({ name, sql }, { body: { id } }) => {
  try {
    const event = await find(sql, id)
    if (!event) return { event: null, history: [] }
    const { organizationId, type, phone, except, publishedAt } = event
    const told = { organization_id: organizationId, type, phone_number_id: phone, except }
    return { event: { ...told, is_published: publishedAt !== null }, history: lifeOf(event, id, name) }
  } catch (err) {
    if (!isCancelled(err)) throw err
    return { event: null, history: [standing(`the outbox of ${name} is too large to be looked through for it`)] }
  }
}

async function find(sql: Sql, id: string) {
  const at = timeOf(id).getTime()
  const [found] = await sql<Recorded[]>`
    select headers ->> 'organization' as organization_id, headers ->> 'type' as type, headers ->> 'phone' as phone,
      headers ->> 'except' as except, created_at, published_at, refused
    from outbox
    where created_at between ${new Date(at - apartMs)} and ${new Date(at + apartMs)} and headers ->> 'event' = ${id}
    limit 1
  `
  return found
}

function lifeOf(
  { organizationId, type, createdAt, publishedAt, refused }: Recorded,
  id: string,
  name: string,
): Moment[] {
  const about = { event_id: id, organization_id: organizationId }
  const what = type ?? 'an event for the services alone, which no subscriber gets,'
  return [
    momentAt(createdAt, `${what} was recorded by ${name}, with the change that it tells of`, about),
    ...(publishedAt ? [momentAt(publishedAt, 'was published to the event stream')] : []),
    ...(refused === null ? [] : [standing(`cannot be published, and was set aside: ${refused}`)]),
    ...(publishedAt || refused !== null ? [] : [standing('waits to be published to the event stream')]),
  ]
}
