import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { oneOf } from '@app/test/faults/random.ts'
import { noteRead } from '../conversations/note-read.ts'
import type { Change } from './random-changes.ts'
import { instanceOf, oneMade, type World } from './random-world.ts'

/**
 * Reads a conversation up to one of its messages. What is read then in those that have ended in the same one depends on when
 * it is asked, so that this is made where nothing else happens at once.
 */
export const read: Change = async (world, random) => {
  const id = oneMade(random, [...world.messages.keys()])
  if (id === null) return
  const upTo = oneOf(random, world.messages.get(id) ?? []).sentAt
  const unread = (world.messages.get(id) ?? []).filter(({ sentAt, isRead }) => sentAt <= upTo && !isRead)
  for (const message of unread) message.isRead = true
  for (const ended of await endedBefore(world, id, upTo))
    for (const message of world.messages.get(ended) ?? []) message.isRead = true
  const count = unread.filter(({ countsUnread }) => countsUnread).length
  const body = { event_id: newId('evt'), conversation_id: id, read: count, up_to: upTo }
  const { app } = instanceOf(world, random)
  await noteRead(app, { params: {}, query: {}, body }, systemCaller(world.organizationId))
}

/** Those whose newest message came before. One into which others had been merged by its end took the time of theirs along. */
async function endedBefore({ directory, organizationId }: World, id: string, upTo: string): Promise<string[]> {
  const rows = await directory.sql<{ id: string }[]>`
    select ended.id from conversations v
    join conversations ended on ended.organization_id = v.organization_id and ended.merged_into = coalesce(v.merged_into, v.id)
    where v.organization_id = ${organizationId} and v.id = ${id} and ended.id <> ${id}
      and ended.last_inbound_at <= ${upTo}::text::timestamptz
  `
  return rows.map((row) => row.id)
}
