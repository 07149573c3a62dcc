import { parseJson } from '@app/shared/json.ts'
import { z } from 'zod'
import { theirEnvelope } from '../upstream/words.ts'

/** One message or one status of a callback, with what stood around it. */
export interface CallbackItem {
  kind: 'message' | 'status'
  /** The business account. */
  entryId: string
  phoneNumberId: string
  metadata: Record<string, unknown>
  /** The contacts that belong to it. */
  contacts: unknown[]
  part: Record<string, unknown>
}

/** A change that is no message and no status, or that no number can be found for. */
interface OtherChange {
  field: string
  reason: 'unknown_field' | 'no_number' | 'shape'
}

export interface Split {
  items: CallbackItem[]
  others: OtherChange[]
  /** Why nothing could be made of the callback at all. */
  fault: string | null
}

const record = z.record(z.string(), z.unknown())

const Envelope = z.object({
  object: z.literal(theirEnvelope),
  entry: z.array(z.object({ id: z.string(), changes: z.array(z.object({ field: z.string(), value: z.unknown() })) })),
})

const MessagesValue = z.object({
  metadata: z.looseObject({ phone_number_id: z.string().regex(/^\d{6,20}$/) }),
  contacts: z.array(z.unknown()).catch([]).default([]),
  messages: z.array(record).catch([]).default([]),
  statuses: z.array(record).catch([]).default([]),
})

/** Takes a callback apart, entry by entry, change by change: one bad part does not hold the others. */
export function splitCallback(body: Uint8Array): Split {
  const split: Split = { items: [], others: [], fault: null }
  const parsed = Envelope.safeParse(parse(body))
  if (!parsed.success) return { ...split, fault: z.prettifyError(parsed.error).slice(0, 500) }
  for (const { id, changes } of parsed.data.entry) {
    for (const { field, value } of changes) {
      if (field === 'messages') splitMessages(split, id, value)
      else split.others.push({ field, reason: 'unknown_field' })
    }
  }
  return split
}

function splitMessages(split: Split, entryId: string, value: unknown) {
  const parsed = MessagesValue.safeParse(value)
  if (!parsed.success) {
    split.others.push({ field: 'messages', reason: 'shape' })
    return
  }
  const { metadata, contacts, messages, statuses } = parsed.data
  const around = { entryId, phoneNumberId: metadata.phone_number_id, metadata }
  for (const part of messages) {
    split.items.push({ kind: 'message', ...around, part, contacts: contactsOf(contacts, part, 'from', 'from_user_id') })
  }
  for (const part of statuses) {
    split.items.push({
      kind: 'status',
      ...around,
      part,
      contacts: contactsOf(contacts, part, 'recipient_id', 'recipient_user_id'),
    })
  }
}

/** Those of a change's contacts that the part names; all of them when it names none. */
function contactsOf(contacts: unknown[], part: Record<string, unknown>, phoneKey: string, userKey: string) {
  const own = contacts.filter((contact) => {
    const { wa_id: waId, user_id: userId } = record.safeParse(contact).data ?? {}
    return (waId !== undefined && waId === part[phoneKey]) || (userId !== undefined && userId === part[userKey])
  })
  return own.length > 0 ? own : contacts.length === 1 ? contacts : []
}

function parse(body: Uint8Array): unknown {
  try {
    return parseJson(body, { brokenText: 'drop' })
  } catch {
    return undefined
  }
}
