import { systemCaller } from '@app/shared/bus/ask.ts'
import { messagesRead } from '@app/shared/contracts/messaging.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { Sweep } from '@app/shared/database/housekeeping.ts'
import { record, recorded } from '@app/shared/events/events.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { deleteMediaOf } from '../media/delete-media.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import { notingDeleted } from './deleted-messages.ts'
import { type Counted, hasCounted } from './unread-messages.ts'

const batchRows = 1_000
const dayMs = 24 * 60 * 60 * 1000

/** After a batch the job rests that many times as long as the batch took, so that nine tenths of the time are the sends' own. */
const restFactor = 9

interface Gone extends Counted {
  id: string
  mediaId: string | null
  conversationId: string
  direction: 'inbound' | 'outbound'
  status: string
}

/**
 * Deletes messages that are older than their organization keeps them, with their attempts and files, 1,000 at a time, oldest
 * first, of one number after the other, and with rests, which end when the service is `stopping`. Open sends stay until they are over.
 */
export function oldMessagesSweep(stopping?: AbortSignal): Sweep {
  let numbers: OwnNumber[] | null = null
  return async function deleteOldMessages(sql) {
    numbers ??= await findNumbers(sql)
    const number = numbers.shift()
    if (!number) {
      numbers = null
      return 0
    }
    const startedAt = performance.now()
    const count = await deleteBatch(sql, number)
    // Behind the others, who would wait for days.
    if (count === batchRows) numbers.push(number)
    const restMs = (performance.now() - startedAt) * restFactor
    await sleep(restMs, undefined, { signal: stopping }).catch(() => {})
    return Math.max(count, 1)
  }
}

/** By an attached number, if there is one: of one that was detached, platform tells no change any more. */
export const retentionOf = (sql: Sql | TransactionSql, organizationId: Fragment) => sql`
  select retention_days from senders where organization_id collate "POSIX" = ${organizationId}
  order by attached desc, updated_at desc limit 1
`

const findNumbers = (sql: Sql) => sql<OwnNumber[]>`
  select s.organization_id, s.phone_number_id
  from senders s cross join lateral (${retentionOf(sql, sql`s.organization_id`)}) o
  where o.retention_days is not null
  order by s.organization_id, s.phone_number_id
`

/** An id begins with the time of its message: the primary key is the order of age. */
async function deleteBatch(sql: Sql, { organizationId, phoneNumberId }: OwnNumber): Promise<number> {
  return sql.begin(async (tx) => {
    // Each time: it may be changed while the deletion goes on.
    const [kept] = await tx<{ retentionDays: number | null }[]>`${retentionOf(tx, tx`${organizationId}`)}`
    if (typeof kept?.retentionDays !== 'number') return 0
    const end = firstIdAt('msg', new Date(Date.now() - kept.retentionDays * dayMs))
    // It runs once an hour, over tables of any size: a plan made while they were empty would be a bad one.
    await tx`set local plan_cache_mode = force_custom_plan`
    const gone = await tx<Gone[]>`
      with gone as (
        delete from messages
        where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and id = any(array(
          select id from messages m
          where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and id < ${end}
            -- 0: its send is open. It stays open for a moment longer where a callback was faster than the call's own answer.
            and rank > 0 and (
              select true from sends
              where lane in (m.conversation_id, m.conversation_id || ':' || m.id) and message_id = m.id limit 1
            ) is null
          order by id limit ${batchRows} for update skip locked
        ))
        returning *
      ), noted as (
        ${notingDeleted(tx)}
      )
      select id, media_id, conversation_id, direction, status, type, unsupported, source from gone
    `
    const ids = gone.map(({ id }) => id)
    await tx`
      delete from send_attempts where organization_id = ${organizationId} and message_id = any(${ids}::text[])
    `
    await tx`
      delete from message_doubles where organization_id = ${organizationId} and message_id = any(${ids}::text[])
    `
    await deleteMediaOf(
      tx,
      gone.map(({ mediaId }) => ({ organizationId, mediaId })),
    )
    await takeOffUnread(tx, organizationId, gone)
    return ids.length
  })
}

/** What was unread is taken off its conversation's count: no read receipt can do that any more. */
async function takeOffUnread(tx: TransactionSql, organizationId: string, gone: Gone[]) {
  const unread = gone.filter((row) => row.direction === 'inbound' && row.status === 'delivered' && hasCounted(row))
  const caller = systemCaller(organizationId)
  await record(
    tx,
    [...Map.groupBy(unread, (row) => row.conversationId)].map(([conversationId, { length }]) =>
      recorded(messagesRead, { conversation_id: conversationId, read: length }, caller),
    ),
  )
}
