import type { Parties } from '@app/shared/contracts/directory.ts'
import { messageEdited, messageRevoked } from '@app/shared/contracts/messaging-changes.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { emit } from '@app/shared/events/events.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import { contentsOf } from './contents.ts'
import { epoch } from './epoch.ts'
import { fittingHistory } from './fitting-history.ts'

/** A message that takes another one back, or puts new words in its place. */
const Revision = z.discriminatedUnion('type', [
  z.looseObject({
    id: z.string().min(1),
    timestamp: epoch,
    type: z.literal('revoke'),
    revoke: z.looseObject({ original_message_id: z.string().min(1) }),
  }),
  z.looseObject({
    id: z.string().min(1),
    timestamp: epoch,
    type: z.literal('edit'),
    edit: z.looseObject({ original_message_id: z.string().min(1), message: z.record(z.string(), z.unknown()) }),
  }),
])

export const isRevision = ({ type }: { type?: unknown }): boolean => type === 'revoke' || type === 'edit'

/** Whose message is revised, and where. */
interface Scope {
  organizationId: string
  phoneNumberId: string
  /** E.164 of the number. */
  senderPhone: string | null
  /** A customer revises inbound messages, which is told; the phone app outbound ones. */
  direction: 'inbound' | 'outbound'
}

interface Edit {
  /** Of the message that brought it. */
  id: string
  content: string | null
  edited_at: string
}

interface Row {
  id: string
  upstreamId: string
  conversationId: string
  contactId: string
  parties: z.output<typeof Parties>
  content: string | null
  revokedAt: Date | null
  originalContent: string | null
  edits: Edit[] | null
}

/** Revises the message that a part names, once for each part, and in any order to the same end. False: that message is not known yet. */
export async function reviseMessage(core: Core, scope: Scope, part: Record<string, unknown>): Promise<boolean> {
  const revision = Revision.parse(part)
  const isKnown = await core.sql.begin(async (tx) => {
    const originalId =
      revision.type === 'revoke' ? revision.revoke.original_message_id : revision.edit.original_message_id
    const row = await lock(tx, scope, originalId)
    if (!row) return false
    if (revision.type === 'revoke') await revoke(tx, scope, row, revision.timestamp)
    else {
      const { content } = contentsOf(revision.edit.message)
      await edit(tx, scope, row, { id: revision.id, content, edited_at: revision.timestamp.toISOString() })
    }
    return true
  })
  core.relay.wake()
  return isKnown
}

async function lock(tx: TransactionSql, { organizationId, phoneNumberId, direction }: Scope, upstreamId: string) {
  const [row] = await tx<Row[]>`
    select id, upstream_id, conversation_id, contact_id, parties, content, revoked_at, original_content, edits from messages
    where organization_id = ${organizationId} and upstream_id = ${upstreamId} and phone_number_id = ${phoneNumberId}
      and direction = ${direction}
    for update
  `
  return row
}

/** The message is flagged, not deleted; what is read of it is the first version. */
async function revoke(tx: TransactionSql, scope: Scope, row: Row, at: Date) {
  if (row.revokedAt) return
  await tx`
    update messages set revoked_at = ${at}, content = case when edits is null then content else original_content end
    where organization_id = ${scope.organizationId} and phone_number_id = ${scope.phoneNumberId} and id = ${row.id}
  `
  if (scope.direction === 'outbound') return
  const data = { ...identifiersOf(scope, row), revoked_at: at.toISOString() }
  await emit(tx, messageRevoked, data, originOf(scope))
}

/** The newest version is read, unless the message was revoked. An edit that comes late is told with the newest version, too. */
async function edit(tx: TransactionSql, scope: Scope, row: Row, made: Edit) {
  const before = row.edits ?? []
  if (before.some(({ id }) => id === made.id)) return
  const original = row.edits ? row.originalContent : row.content
  const edits = [...before, made].toSorted((a, b) => (`${a.edited_at} ${a.id}` < `${b.edited_at} ${b.id}` ? -1 : 1))
  const newest = edits.at(-1) ?? made
  await tx`
    update messages set original_content = ${original}, edits = ${JSON.stringify(edits)}::text::jsonb,
      content = ${row.revokedAt ? original : newest.content}
    where organization_id = ${scope.organizationId} and phone_number_id = ${scope.phoneNumberId} and id = ${row.id}
  `
  if (scope.direction === 'outbound') return
  const data = {
    ...identifiersOf(scope, row),
    new_content: newest.content,
    original_content: original,
    edited_at: newest.edited_at,
    edit_history: fittingHistory(
      edits.map(({ content, edited_at }) => ({ content, edited_at })),
      [newest.content, original],
    ),
  }
  await emit(tx, messageEdited, data, originOf(scope))
}

const originOf = ({ organizationId, phoneNumberId }: Scope) => ({ organizationId, phoneNumberId })

const identifiersOf = ({ phoneNumberId, senderPhone }: Scope, row: Row) => ({
  message_id: row.id,
  provider_id: row.upstreamId,
  conversation_id: row.conversationId,
  contact_id: row.contactId,
  contact_phone_number: row.parties.contact.phone_number,
  phone_number_id: phoneNumberId,
  display_phone_number: senderPhone,
})
