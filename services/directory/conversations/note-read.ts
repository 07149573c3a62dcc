import { consume, type Consuming } from '@app/shared/events/consume.ts'
import type { Handler } from '@app/shared/api/contract.ts'
import type { noteRead as contract } from '@app/shared/contracts/directory.ts'
import { messagesRead } from '@app/shared/contracts/messaging.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { DataService } from '@app/shared/service/service.ts'
import type { App } from '../app.ts'
import { lookTwice } from '../races.ts'

const { name: consumer } = consumers.directoryMessagesRead

/** The question and the event of one read receipt have one id: who comes first takes the messages off the count. */
export const noteRead: Handler<App, typeof contract> = async ({ sql }, { body }, { organizationId }) => {
  await sql.begin(async (tx) => {
    const first = await tx`
      insert into handled_events (consumer, event_id) values (${consumer}, ${`${organizationId}:${body.event_id}`})
      on conflict do nothing returning consumer
    `
    if (first.length === 1) await takeOff(tx, organizationId, body)
  })
  return { noted: true }
}

export const consumeReads = (app: DataService): Consuming =>
  consume(app, consumer, messagesRead, (tx, read, { organization }) => takeOff(tx, organization, read))

interface Read {
  conversation_id: string
  /** How many messages were read that counted as unread. */
  read: number
  /** The time of the last one. */
  up_to?: string | null | undefined
}

/**
 * A conversation that was merged into another took its count along; one that is being merged is waited for, and asked again. Who
 * reads up to a time has also read what came before it in those that have ended: of these no receipt would be sent.
 */
async function takeOff(tx: TransactionSql, organizationId: string, { conversation_id: id, read, up_to: upTo }: Read) {
  await lookTwice(tx, async () => {
    const { count } = await tx`
      with live as (
        select coalesce(merged_into, id) as id, contact_id from conversations
        where organization_id = ${organizationId} and id = ${id}
      ), locked as (
        select v.id, v.merged_into, v.unread_there, coalesce(v.own_inbound_at, v.last_inbound_at) as newest from live join conversations v
          on v.organization_id = ${organizationId} and v.contact_id = live.contact_id
            and (v.id = live.id or v.merged_into = live.id)
        order by v.id for no key update of v
      ), off as (
        select id, case when id = ${id} then least(unread_there, ${read}::int)
          when newest <= ${upTo ?? null}::text::timestamptz then unread_there end as count
        from locked where merged_into is not null or id = ${id}
      ), ended as (
        update conversations v set unread_there = unread_there - off.count from off
        where v.organization_id = ${organizationId} and v.id = off.id and off.count > 0 and v.merged_into is not null
      )
      update conversations v set updated_at = greatest(v.updated_at, now()),
        unread_count = greatest(0, v.unread_count - (select coalesce(sum(count), 0) from off))
      from locked where v.organization_id = ${organizationId} and v.id = locked.id and locked.merged_into is null
        and (select sum(count) from off) > 0
    `
    return count
  })
}
