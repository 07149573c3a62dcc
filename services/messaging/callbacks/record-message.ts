import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { createInTurn, type InTurn } from '@app/shared/bus/in-turn.ts'
import { batched } from '@app/shared/work/batched.ts'
import type { Caller } from '@app/shared/api/contract.ts'
import { recordInbound } from '@app/shared/contracts/directory.ts'
import { bsuid, waId } from '@app/shared/contracts/fields.ts'
import { messageReceived } from '@app/shared/contracts/messaging.ts'
import { record, type Recorded, recorded } from '@app/shared/events/events.ts'
import { newId, newIdAt, timeOf } from '@app/shared/values/ids.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import { beginCopies, type PlatformFile, platformFileOf } from '../media/begin-copies.ts'
import { wasDeleted } from '../messages/deleted-messages.ts'
import { platformId } from '../upstream/platform-id.ts'
import { adoptImported } from './adopt-imported.ts'
import { blockOf, type Contents, contentsOf } from './contents.ts'
import { epoch } from './epoch.ts'
import { passthroughOf } from './passthrough.ts'
import { recordSystem } from './record-system.ts'
import { isRevision, reviseMessage } from './revise-message.ts'
import type { WaitingItem } from './waiting-items.ts'

/** One of another form is none: a message counts without it, as long as it is from anybody. */
const userId = bsuid.nullish().catch(null)
const digits = waId.nullish().catch(null)

const Message = z.looseObject({
  id: platformId,
  timestamp: epoch,
  type: z.string(),
  from: digits,
  from_user_id: userId,
  context: z.looseObject({ id: z.string().nullish() }).nullish().catch(null),
})

const word = z.string().nullish().catch(null)

const Contact = z.looseObject({
  profile: z.looseObject({ name: word, username: word }).nullish().catch(null),
  wa_id: digits,
  user_id: userId,
  parent_user_id: word,
})

/** A message from nobody is none of the platform's, and will be nobody's however often it is looked at. */
const Sender = z
  .object({ wa_id: z.string().nullable(), bsuid: z.string().nullable() })
  .refine(({ wa_id: waId, bsuid: user }) => waId !== null || user !== null, 'is from nobody')

type Inbound = z.output<typeof Message>

/** Questions to directory at a time for one organization: the backlog of its numbers would fill the queue in which all wait there. */
const asksOfOne = 256

/** What directory takes of a name. */
const longestName = 1_000

/**
 * Records an inbound message: contact, conversation and window in directory first (the same platform id changes nothing
 * there twice), then the row and its event in one transaction.
 */
export function recordMessages(core: Core): (item: WaitingItem) => Promise<boolean> {
  const insert = batched<Row, void>((rows) => insertAll(core, rows), { rows: 128 })
  const inTurn = createInTurn('messages', asksOfOne)
  return async (item) => {
    const message = Message.parse(item.part)
    if (message.type === 'system') return recordSystem(core, item)
    if (isRevision(message)) return reviseMessage(core, { ...item, direction: 'inbound' }, item.part)
    await insert(await rowOf(core, inTurn, item, message))
    return true
  }
}

interface Row {
  item: WaitingItem
  message: Inbound
  id: string
  contents: Contents
  /** The file that it names, and the id of its copy. */
  media: { id: string; file: PlatformFile } | null
  answer: Awaited<ReturnType<typeof askDirectory>>
  event: Recorded
}

async function rowOf(core: Core, inTurn: InTurn, item: WaitingItem, message: Inbound): Promise<Row> {
  const id = newIdAt('msg', message.timestamp)
  const file = platformFileOf(item.part)
  const media = file && { id: newId('med'), file }
  const caller = systemCaller(item.organizationId, newId('req'))
  const answer = await inTurn(caller, () => askDirectory(core, item, { message, id, caller }))
  // Made before the row joins others, so that one too large to be told fails by itself.
  const event = receivedEvent(item, message, id, answer)
  return { item, message, id, contents: contentsOf(item.part), media, answer, event }
}

interface Question {
  message: Inbound
  id: string
  caller: Caller
}

async function askDirectory(core: Core, item: WaitingItem, { message, id, caller }: Question) {
  const contact = Contact.safeParse(item.contacts[0]).data
  const sender = Sender.parse({
    wa_id: message.from ?? contact?.wa_id ?? null,
    bsuid: message.from_user_id ?? contact?.user_id ?? null,
  })
  return call(
    core,
    recordInbound,
    {
      params: { phone_number_id: item.phoneNumberId },
      body: {
        upstream_id: message.id,
        message_id: id,
        sent_at: timeOf(id).toISOString(),
        ...sender,
        parent_bsuid: contact?.parent_user_id ?? null,
        username: contact?.profile?.username ?? null,
        profile_name: contact?.profile?.name?.slice(0, longestName).toWellFormed() ?? null,
        counts_unread: message.type !== 'reaction',
      },
    },
    caller,
  )
}

async function insertAll({ sql, known }: Core, rows: Row[]): Promise<void[]> {
  const inserts = rows.map(({ item, message, id, contents, media, answer }) => ({
    organization_id: item.organizationId,
    phone_number_id: item.phoneNumberId,
    id,
    conversation_id: answer.conversation.id,
    contact_id: answer.contact.id,
    type: contents.type,
    content: contents.content,
    unsupported: contents.unsupported,
    body: blockOf(item.part, message.type) ?? {},
    parties: { conversation: answer.conversation, contact: answer.contact },
    context_id: message.context?.id ?? null,
    upstream_id: message.id,
    media_id: media?.id ?? null,
    created_at: timeOf(id).toISOString(),
  }))
  const made = await sql.begin(async (tx) => {
    const fresh = await tx<{ id: string }[]>`
      insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, content,
        unsupported, body, parties, context_id, status, rank, upstream_id, media_id, request_id, created_at)
      select organization_id, phone_number_id, id, conversation_id, contact_id, 'inbound', type, content, unsupported, body,
        parties, context_id, 'delivered', 4, upstream_id, media_id, '', created_at
      from json_to_recordset(${JSON.stringify(inserts)}::text::json) as m(organization_id text, phone_number_id text, id text,
        conversation_id text, contact_id text, type text, content text, unsupported text, body jsonb, parties jsonb,
        context_id text, upstream_id text, media_id text, created_at timestamptz)
      where not ${wasDeleted(tx)}
      order by organization_id, upstream_id
      on conflict (organization_id, upstream_id) where upstream_id is not null do nothing
      returning id
    `
    const ids = new Map(fresh.map(({ id }) => [id, id]))
    const adopted = await adoptImported(
      tx,
      inserts.filter(({ id }) => !ids.has(id)),
    )
    const recorded = rows.flatMap((row) => renamed(row, ids.get(row.id) ?? adopted.get(row.id)))
    await record(
      tx,
      recorded.flatMap(({ media, event }) => (media ? [] : event)),
    )
    // Told with the address of its file, as soon as that is there.
    await beginCopies(tx, recorded.flatMap(copyOf))
    return recorded
  })
  for (const row of made) noteInbound(known, row)
  return rows.map(() => undefined)
}

/** A message under the id that it has; none when it was recorded before. */
function renamed(row: Row, id: string | undefined): Row[] {
  if (id === undefined) return []
  return id === row.id ? [row] : [{ ...row, id, event: receivedEvent(row.item, row.message, id, row.answer) }]
}

/** Not of a message that comes again: directory answers what it was then, and its contact may be gone since, or merged. */
function noteInbound(
  known: Core['known'],
  { item, answer: { conversation, contact, window_until: windowUntil } }: Row,
) {
  if (contact.phone_number === null) return
  const windowUntilMs = windowUntil ? Date.parse(windowUntil) : 0
  known.noteInbound(item, contact.phone_number, { parties: { conversation, contact }, windowUntilMs })
}

function copyOf({ media, item, event }: Row) {
  if (!media) return []
  const { organizationId, phoneNumberId } = item
  return [{ organizationId, phoneNumberId, mediaId: media.id, file: media.file, event }]
}

/** The platform's envelope, and beside it what we know: ids, conversation, contact, labels. */
function receivedEvent(item: WaitingItem, message: Inbound, id: string, answer: Row['answer']) {
  const { conversation, contact, labels } = answer
  const svc = {
    conversation_id: conversation.id,
    contact_id: contact.id,
    message_id: id,
    phone_number_id: item.phoneNumberId,
    labels,
    conversation: { status: conversation.status, assigned_to: conversation.assigned_to },
    contact: { name: contact.name, phone_number: contact.phone_number },
  }
  return recorded(
    messageReceived,
    { ...passthroughOf(item), svc },
    { organizationId: item.organizationId, id: message.id, phoneNumberId: item.phoneNumberId },
  )
}
