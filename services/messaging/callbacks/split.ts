import { parseJson } from '@app/shared/api/json.ts'
import { z } from 'zod'
import { theirEnvelope } from '../upstream/words.ts'
import { isKnownField, isOfNumber, numberErrors } from './changes.ts'
import { piecesOf } from './pieces.ts'

/** One message, one status or one other change of a callback, with what stood around it. */
export interface CallbackItem {
  kind: 'message' | 'status' | 'change'
  /** The business account. */
  entryId: string
  /** Null for a change that names no number: it is the business account's. */
  phoneNumberId: string | null
  metadata: Record<string, unknown>
  /** The contacts that belong to it. */
  contacts: unknown[]
  /** Of a change: its `field` and `value`, and the `time` of its entry. */
  part: Record<string, unknown>
}

/** A change, or a part of one, of which nothing is made. */
interface OtherChange {
  /** `callback`, `entry` or `changes` for one that has no field. */
  field: string
  reason: 'unknown_field' | 'shape'
}

export interface Split {
  items: CallbackItem[]
  others: OtherChange[]
  /** Why it is no callback of the platform: it is kept, and never taken apart again. */
  fault: string | null
}

const record = z.record(z.string(), z.unknown())

const Envelope = z.object({ object: z.literal(theirEnvelope), entry: z.array(z.unknown()) })

/** A text; a number would not be the platform's, but tells as much. */
const id = z.union([z.string(), z.int().transform(String)])

const Metadata = z.looseObject({ phone_number_id: id.pipe(z.string().regex(/^\d{6,20}$/)) })

const Entry = z.object({
  id,
  /** Epoch seconds. */
  time: z.number().positive().max(1e11).optional().catch(undefined),
  changes: z.array(z.unknown()),
})

const EntryChange = z.object({ field: z.string(), value: z.unknown() })

/** What is no list is one bad part. */
const parts = z
  .array(z.unknown())
  .nullish()
  .transform((list) => list ?? [])
  .catch([null])

const MessagesValue = z.object({
  metadata: Metadata,
  contacts: z.array(z.unknown()).catch([]).default([]),
  messages: parts,
  statuses: parts,
  errors: parts,
})

const ChangeValue = z.looseObject({
  metadata: Metadata.optional().catch(undefined),
  /** The business account, where a callback is about the business's tie to us: its entry is then of our own business. */
  waba_info: z
    .looseObject({ waba_id: id.pipe(z.string().min(1)) })
    .optional()
    .catch(undefined),
})

/**
 * Takes a callback apart, entry by entry, change by change, message by message: a bad part is counted, and holds no other.
 * Only what is no callback of the platform at all has a fault.
 */
export function splitCallback(body: Uint8Array): Split {
  const split: Split = { items: [], others: [], fault: null }
  const parsed = Envelope.safeParse(parse(body))
  if (!parsed.success) {
    const others = [{ field: 'callback', reason: 'shape' as const }]
    return { ...split, others, fault: z.prettifyError(parsed.error).slice(0, 500) }
  }
  for (const { id, time, changes } of fitOf(split, Entry, parsed.data.entry, 'entry')) {
    for (const { field, value } of fitOf(split, EntryChange, changes, 'changes')) {
      if (field === 'messages') splitMessages(split, id, value)
      else splitChange(split, id, time, field, value)
    }
  }
  return split
}

/** Those of a list that have the shape; each other one is counted under `field`. */
function fitOf<S extends z.ZodType>(split: Split, shape: S, list: unknown[], field: string): z.output<S>[] {
  return list.flatMap((one) => {
    const parsed = shape.safeParse(one)
    if (parsed.success) return [parsed.data]
    split.others.push({ field, reason: 'shape' })
    return []
  })
}

function splitMessages(split: Split, entryId: string, value: unknown) {
  const [parsed] = fitOf(split, MessagesValue, [value], 'messages')
  if (!parsed) return
  const { metadata, contacts } = parsed
  const [messages = [], statuses = [], errors = []] = [parsed.messages, parsed.statuses, parsed.errors].map((list) =>
    fitOf(split, record, list, 'messages'),
  )
  const around = { entryId, phoneNumberId: metadata.phone_number_id, metadata }
  const isAlone = messages.length + statuses.length === 1
  const of = contactsOf(contacts, isAlone)
  for (const part of messages) {
    split.items.push({ kind: 'message', ...around, part, contacts: of(part, ['from', 'from_user_id']) })
  }
  for (const part of statuses) {
    split.items.push({ kind: 'status', ...around, part, contacts: of(part, ['recipient_id', 'recipient_user_id']) })
  }
  // The number's own trouble, also beside messages and statuses: theirs stand in themselves.
  if (errors.length > 0) {
    split.items.push({ kind: 'change', ...around, contacts: [], part: { field: numberErrors, value: { errors } } })
  }
}

/** A change of a number that it names, else of its business account. */
function splitChange(split: Split, entryId: string, time: number | undefined, field: string, value: unknown) {
  const parsed = ChangeValue.safeParse(value)
  if (!isKnownField(field) || !parsed.success) {
    split.others.push({ field, reason: isKnownField(field) ? 'shape' : 'unknown_field' })
    return
  }
  const { metadata, waba_info: account } = parsed.data
  if (metadata === undefined && isOfNumber(field)) {
    split.others.push({ field, reason: 'shape' })
    return
  }
  for (const piece of piecesOf(field, parsed.data)) {
    split.items.push({
      kind: 'change',
      entryId: account?.waba_id ?? entryId,
      phoneNumberId: metadata?.phone_number_id ?? null,
      metadata: metadata ?? {},
      contacts: [],
      part: { field, value: piece, time },
    })
  }
}

type IdKeys = readonly [phone: string, user: string]

/**
 * Finds those of a change's contacts that a part names. The only one of the only part is its own, unless they name different
 * people; of several parts some have none, such as failed statuses. A callback may have thousands of both: each is read once.
 */
function contactsOf(contacts: unknown[], isAlone: boolean) {
  const named = contacts.map((contact, n) => {
    const { wa_id: waId, user_id: userId } = record.safeParse(contact).data ?? {}
    return { n, contact, waId, userId }
  })
  const byNumber = Map.groupBy(named, ({ waId }) => waId)
  const byUser = Map.groupBy(named, ({ userId }) => userId)
  const [only] = named
  return (part: Record<string, unknown>, [phone, user]: IdKeys): unknown[] => {
    const waId = part[phone]
    const userId = part[user]
    const found = [
      ...(isId(waId) ? (byNumber.get(waId) ?? []) : []),
      ...(isId(userId) ? (byUser.get(userId) ?? []) : []),
    ]
    if (found.length > 0) return [...new Set(found)].toSorted((a, b) => a.n - b.n).map(({ contact }) => contact)
    const isOther = (isId(waId) && isId(only?.waId)) || (isId(userId) && isId(only?.userId))
    return isAlone && contacts.length === 1 && !isOther ? contacts : []
  }
}

const isId = (id: unknown) => id !== undefined && id !== null && id !== ''

function parse(body: Uint8Array): unknown {
  try {
    return parseJson(body, { brokenText: 'drop' })
  } catch {
    return undefined
  }
}
