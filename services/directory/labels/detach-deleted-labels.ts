import type { Sql } from '@app/shared/database/database.ts'
import { type Loop, startLoop } from '@app/shared/work/loop.ts'
import type { Relay } from '@app/shared/events/relay.ts'
import type { DataService } from '@app/shared/service/service.ts'
import { lockContacts, setLabel } from '../contacts/set-label.ts'

interface Detaching {
  sql: Sql
  relay: Relay
}

interface Deleted {
  organizationId: string
  id: string
}

/**
 * Contacts of an organization in a turn. Each becomes an event for its endpoints, which with an answer in 100 ms take 100 a second: all at
 * once, they would keep its own messages waiting for minutes, or push them out of what a subscription holds.
 */
const batchContacts = 50
const batchConversations = 5_000
/** From one turn to the next. */
const turnMs = 1_000

/** How long work that a stopped or dead instance has left may wait while nobody deletes a label; half as long again at most. */
const pollMs = 5_000

export function startDetaching({ sql, log }: DataService, relay: Relay): Loop {
  const turn = async () => ((await detachDeletedLabels({ sql, relay })) > 0 ? turnMs : pollMs)
  const loop = startLoop(log, 'detach labels', turn, { spacingMs: turnMs })
  loop.wake()
  return loop
}

/**
 * Detaches deleted labels from what they are attached to, with the events of the changed contacts; a label that is attached to nothing any
 * more is removed. One batch for each organization that has some, so that none waits for another's or fails with it. What a crash leaves
 * is there for the next run, and two runs at once do nothing twice. Answers for how many organizations there was something to do: none are
 * left when it is 0.
 */
export async function detachDeletedLabels(app: Detaching): Promise<number> {
  const labels = await app.sql<Deleted[]>`
    select distinct on (organization_id) organization_id, id from labels where deleted_at is not null
    order by organization_id, deleted_at, id
  `
  const failures: unknown[] = []
  for (const label of labels) await detachSome(app, label).catch((err: unknown) => failures.push(err))
  if (failures.length > 0) throw failures[0]
  return labels.length
}

async function detachSome(app: Detaching, label: Deleted) {
  if ((await detachContacts(app, label)) > 0 || (await detachConversations(app, label)) > 0) return
  // Whoever attaches holds the label (holdLabel), and a merge the contact that it takes the label from, so nothing comes after.
  await app.sql`
    delete from labels where organization_id = ${label.organizationId} and id = ${label.id} and deleted_at is not null
  `
}

async function detachContacts({ sql, relay }: Detaching, { organizationId, id }: Deleted): Promise<number> {
  const attached = await sql<{ contactId: string }[]>`
    select contact_id from contact_labels where organization_id = ${organizationId} and label_id = ${id}
    order by phone_number_id, contact_id limit ${batchContacts}
  `
  if (attached.length === 0) return 0
  const ids = attached.map(({ contactId }) => contactId)
  await sql.begin(async (tx) => {
    await lockContacts(tx, { organizationId }, ids)
    await setLabel(tx, { organizationId }, { labelId: id, operation: 'detach' }, ids)
  })
  relay.wake()
  return attached.length
}

async function detachConversations({ sql }: Detaching, { organizationId, id }: Deleted): Promise<number> {
  const { count } = await sql`
    delete from conversation_labels where ctid = any(array(
      select ctid from conversation_labels where organization_id = ${organizationId} and label_id = ${id}
      limit ${batchConversations}
    ))
  `
  return count
}
