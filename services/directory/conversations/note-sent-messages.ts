import { consumeBatches, type Consuming } from '@app/shared/consume.ts'
import { messageSent } from '@app/shared/contracts/messaging.ts'
import type { Sql } from '@app/shared/database.ts'
import { consumers } from '@app/shared/provision.ts'
import type { DataService } from '@app/shared/service.ts'
import { z } from 'zod'

interface SentMessage {
  organization_id: string
  conversation_id: string
  sent_at: string
}

const Envelope = z.object({ data: messageSent.data })

/** `message.sent` moves its conversation up. Handled again, an event changes nothing. */
export const consumeSentMessages = (app: DataService): Consuming =>
  consumeBatches(app, consumers.directorySentMessages.name, async (events) => {
    const sent = events.map(({ headers, payload }) => {
      const { data } = Envelope.parse(JSON.parse(Buffer.from(payload).toString()))
      return {
        organization_id: headers.organization,
        conversation_id: data.conversation.id,
        sent_at: data.timestamp,
      }
    })
    await noteSentMessages(app.sql, sent)
  })

/** Answers how many conversations moved forward; one that is not known, or has a newer message, is left alone. */
export async function noteSentMessages(sql: Sql, sent: SentMessage[]): Promise<number> {
  // Grouped, since a row can be updated once; locked in the order of their keys, so that no two calls wait for each other.
  const { count } = await sql`
    with sent as (
      select organization_id, conversation_id, max(sent_at) as sent_at
      from json_to_recordset(${JSON.stringify(sent)}::text::json) as u(
        organization_id text, conversation_id text, sent_at timestamptz(3))
      group by organization_id, conversation_id
      order by organization_id, conversation_id
    ), locked as (
      select v.organization_id, v.id
      from sent
      cross join lateral (
        select organization_id, id from conversations
        where organization_id = sent.organization_id and id = sent.conversation_id
          and (last_message_at is null or last_message_at < sent.sent_at)
        limit 1 for no key update
      ) v
    )
    update conversations v set last_message_at = greatest(v.last_message_at, sent.sent_at), updated_at = now()
    from locked join sent on sent.organization_id = locked.organization_id and sent.conversation_id = locked.id
    where v.organization_id = locked.organization_id and v.id = locked.id
  `
  return count
}
