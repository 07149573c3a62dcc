import { consume, type Consuming } from '@app/shared/events/consume.ts'
import type { Handler } from '@app/shared/api/contract.ts'
import type { noteRead as contract } from '@app/shared/contracts/directory.ts'
import { messagesRead } from '@app/shared/contracts/messaging.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { DataService } from '@app/shared/service/service.ts'
import type { App } from '../app.ts'

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
}

/** A conversation that was merged into another took its count along; one that is being merged is waited for, and asked again. */
async function takeOff(tx: TransactionSql, organizationId: string, { conversation_id: id, read }: Read) {
  const update = () => tx`
    update conversations set unread_count = greatest(0, unread_count - ${read}), updated_at = greatest(updated_at, now())
    where organization_id = ${organizationId} and merged_into is null and id = (
      select coalesce(merged_into, id) from conversations where organization_id = ${organizationId} and id = ${id}
    )
  `
  const { count } = await update()
  if (count === 0) await update()
}
