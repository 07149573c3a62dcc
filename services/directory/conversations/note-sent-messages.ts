import { consumeBatches, type Consuming } from '@app/shared/events/consume.ts'
import type { Delivered } from '@app/shared/events/events.ts'
import { messageSent } from '@app/shared/contracts/messaging.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { EventHeaders } from '@app/shared/events/events.ts'
import { consumers } from '@app/shared/events/provision.ts'
import { z } from 'zod'
import type { App } from '../app.ts'
import { learnRecipients } from '../contacts/learn-recipients.ts'

interface SentMessage {
  organization_id: string
  conversation_id: string
  sent_at: string
}

/** Nobody waits for it, and a row of a batch of 50 costs half of a row of a batch of 10. */
const spacingMs = 50

const Envelope = z.object({ data: messageSent.data })

/** `message.sent` moves its conversation up, and may tell how the platform writes the recipient. Handled again, an event changes nothing. */
export const consumeSentMessages = (app: App): Consuming =>
  consumeBatches(app, consumers.directorySentMessages.name, (events) => handle(app, events), { spacingMs })

async function handle(app: App, events: Delivered[]) {
  const sent = events.map(({ headers, payload }) => ({
    headers,
    data: Envelope.parse(JSON.parse(Buffer.from(payload).toString())).data,
  }))
  await noteSentMessages(
    app.sql,
    sent.map(({ headers, data }) => ({
      organization_id: headers.organization,
      conversation_id: data.conversation.id,
      sent_at: data.timestamp,
    })),
  )
  await learnRecipients(app, sent.flatMap(recipientOf))
}

interface Sent {
  headers: EventHeaders
  data: z.output<typeof messageSent.data>
}

const recipientOf = ({ headers, data }: Sent) => {
  const { to } = data.message
  if (headers.recipient === undefined || to === null) return []
  return {
    organizationId: headers.organization,
    phoneNumberId: data.session,
    traceparent: headers.trace ?? '',
    phoneNumber: to,
    waId: headers.recipient,
    sentAt: new Date(data.timestamp),
  }
}

/**
 * Answers how many conversations moved forward; one that is unknown, or has a newer message, is left alone. A message sent in a merged
 * conversation counts for the one into which it was merged. One that was just being merged is looked at a second time, to see which one
 * that is.
 */
export async function noteSentMessages(sql: Sql, sent: SentMessage[]): Promise<number> {
  // Grouped, since a statement updates a row only once; locked in the order of their keys, so that no two calls deadlock.
  const rows = await sql<{ hasEnded: boolean }[]>`
    with sent as (
      select u.organization_id, v.conversation_id, max(u.sent_at) as sent_at
      from json_to_recordset(${JSON.stringify(sent)}::text::json) as u(
        organization_id text, conversation_id text, sent_at timestamptz(3))
      cross join lateral (
        select coalesce(merged_into, id) as conversation_id from conversations
        where organization_id = u.organization_id and id = u.conversation_id limit 1
      ) v
      group by u.organization_id, v.conversation_id
      order by u.organization_id, v.conversation_id
    ), locked as (
      select v.organization_id, v.id, v.has_ended
      from sent
      cross join lateral (
        select organization_id, id, merged_into is not null as has_ended from conversations
        where organization_id = sent.organization_id and id = sent.conversation_id
          and (last_message_at is null or last_message_at < sent.sent_at)
        limit 1 for no key update
      ) v
    ), moved as (
      update conversations v set last_message_at = greatest(v.last_message_at, sent.sent_at), updated_at = greatest(v.updated_at, now())
      from locked join sent on sent.organization_id = locked.organization_id and sent.conversation_id = locked.id
      where v.organization_id = locked.organization_id and v.id = locked.id and not locked.has_ended
    )
    select has_ended from locked
  `
  const ended = rows.filter(({ hasEnded }) => hasEnded)
  return rows.length - ended.length + (ended.length > 0 ? await noteSentMessages(sql, sent) : 0)
}
