import type { World } from './random-world.ts'

/** What is wrong in the tables after anything that may have happened; nothing, if all is well. */
export async function wrongInRows(world: World): Promise<string[]> {
  const found = [
    ...(await wrongNames(world)),
    ...(await wrongMerges(world)),
    ...(await wrongTimes(world)),
    ...(await wrongUnread(world)),
    ...(await wrongSent(world)),
  ]
  return found.map((wrong) => JSON.stringify(wrong))
}

const wrongNames = ({ directory, organizationId }: World) => directory.sql`
  select 'a name of a contact that is gone' as wrong, c.id, i.value from identities i
  join contacts c on c.organization_id = i.organization_id and c.id = i.contact_id
  where i.organization_id = ${organizationId} and c.deleted_at is not null
  union all
  select 'a contact without a name', c.id, null from contacts c
  where c.organization_id = ${organizationId} and c.deleted_at is null and not exists (
    select from identities i where i.organization_id = ${organizationId} and i.contact_id = c.id)
`

const wrongMerges = ({ directory, organizationId }: World) => directory.sql`
  select 'a conversation that goes on in none' as wrong, ended.id, ended.merged_into from conversations ended
  left join conversations live on live.organization_id = ended.organization_id and live.id = ended.merged_into
  where ended.organization_id = ${organizationId} and ended.merged_into is not null
    and (live.id is null or live.merged_into is not null or live.contact_id <> ended.contact_id or ended.status <> 'resolved')
  union all
  select 'a conversation of a contact that was merged', v.id, c.merged_into from conversations v
  join contacts c on c.organization_id = v.organization_id and c.id = v.contact_id
  where v.organization_id = ${organizationId} and c.merged_into is not null
`

const wrongTimes = ({ directory, organizationId }: World) => directory.sql`
  select 'a conversation that is older than one that has ended in it' as wrong, live.id, ended.id as ended
  from conversations live
  join conversations ended on ended.organization_id = live.organization_id and ended.merged_into = live.id
  where live.organization_id = ${organizationId} and (
    ended.last_message_at > live.last_message_at or ended.last_inbound_at > live.last_inbound_at
    or (ended.last_message_at is not null and live.last_message_at is null)
    or (ended.last_inbound_at is not null and live.last_inbound_at is null))
`

/** Each message that counts and was not read counts once, where its conversation goes on. */
async function wrongUnread({ directory, organizationId, messages }: World) {
  const rows = await directory.sql<{ id: string; live: string; unreadCount: number }[]>`
    select id, coalesce(merged_into, id) as live, unread_count from conversations where organization_id = ${organizationId}
  `
  const expected = new Map<string, number>()
  for (const { id, live } of rows) {
    const unread = (messages.get(id) ?? []).filter(({ countsUnread, isRead }) => countsUnread && !isRead)
    expected.set(live, (expected.get(live) ?? 0) + unread.length)
  }
  return rows.flatMap(({ id, live, unreadCount }) => {
    const right = id === live ? (expected.get(id) ?? 0) : 0
    return unreadCount === right ? [] : [{ wrong: 'a count of unread messages', id, unreadCount, right }]
  })
}

/** What was sent counts where the conversation goes on. */
async function wrongSent({ directory, organizationId, sent }: World) {
  const rows = await directory.sql<{ id: string; live: string; lastMessageAt: Date | null }[]>`
    select v.id, live.id as live, live.last_message_at from conversations v
    join conversations live on live.organization_id = v.organization_id and live.id = coalesce(v.merged_into, v.id)
    where v.organization_id = ${organizationId}
  `
  return rows.flatMap(({ id, live, lastMessageAt }) => {
    const sentAt = sent.get(id)
    const isLost = sentAt !== undefined && (lastMessageAt?.toISOString() ?? '') < sentAt
    return isLost ? [{ wrong: 'a message that was sent and does not count', id, live, sentAt, lastMessageAt }] : []
  })
}
