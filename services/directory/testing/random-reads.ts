import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { oneOf } from '@app/test/faults/random.ts'
import { noteRead } from '../conversations/note-read.ts'
import type { Change } from './random-changes.ts'
import { instanceOf, oneMade, type World } from './random-world.ts'

/**
 * Reads a conversation up to one of its messages, and with it those that have ended in the same one and got none later. Which these are
 * depends on when it is asked, so that this is made where nothing else happens at once.
 */
export const read: Change = async (world, random) => {
  const id = oneMade(random, [...world.messages.keys()])
  if (id === null) return
  const upTo = oneOf(random, world.messages.get(id) ?? []).sentAt
  const unread = (world.messages.get(id) ?? []).filter(({ sentAt, isRead }) => sentAt <= upTo && !isRead)
  for (const message of unread) message.isRead = true
  const ended = (await endedBeside(world, id)).map((other) => world.messages.get(other) ?? [])
  for (const message of ended.filter((messages) => messages.every(({ sentAt }) => sentAt <= upTo)).flat())
    message.isRead = true
  const count = unread.filter(({ countsUnread }) => countsUnread).length
  const body = { event_id: newId('evt'), conversation_id: id, read: count, up_to: upTo }
  const { app } = instanceOf(world, random)
  await noteRead(app, { params: {}, query: {}, body }, systemCaller(world.organizationId))
}

/** Those that have ended in the same one. */
async function endedBeside({ directory, organizationId }: World, id: string): Promise<string[]> {
  const rows = await directory.sql<{ id: string }[]>`
    select ended.id from conversations v
    join conversations ended on ended.organization_id = v.organization_id and ended.merged_into = coalesce(v.merged_into, v.id)
    where v.organization_id = ${organizationId} and v.id = ${id} and ended.id <> ${id}
  `
  return rows.map((row) => row.id)
}
