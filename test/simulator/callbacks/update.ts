import type { PhoneNumber } from '../numbers/numbers.ts'
import type { Words } from '../words.ts'

/** An inbound message or a status. `item` and `contact` are JSON already. */
export interface ItemUpdate {
  number: PhoneNumber
  kind: 'messages' | 'statuses'
  item: string
  contact: string | undefined
}

/** A change of a business account, which shares its place with no other; `value` is JSON already. */
interface FieldUpdate {
  businessAccountId: string
  /** Whose entry tells it, when that is not the account. */
  entryId?: string | undefined
  field: string
  value: string
}

/** One thing that callbacks tell. */
export type Update = ItemUpdate | FieldUpdate

const isItem = (update: Update): update is ItemUpdate => 'item' in update

export const sizeOf = (update: Update) =>
  isItem(update) ? update.item.length + (update.contact?.length ?? 0) : update.value.length

/** The JSON body of one callback that tells all of them: an entry per account, a change per number and kind. */
export function callbackBody(updates: Update[], words: Words) {
  const owners = Map.groupBy(updates, entryOf)
  const entries = Array.from(owners, ([id, ofAccount]) => {
    const items = ofAccount.filter((update) => isItem(update))
    const fields = ofAccount.filter((update): update is FieldUpdate => !isItem(update))
    const changes = Array.from(Map.groupBy(items, metadataOf), ([metadata, ofNumber]) =>
      Array.from(
        Map.groupBy(ofNumber, ({ kind }) => kind),
        ([kind, ofKind]) => change(metadata, kind, ofKind, words),
      ),
    )
    const others = fields.map(({ field, value }) => `{"value":${value},"field":"${field}"}`)
    // Only what is told of the account itself says when.
    const time = others.length > 0 ? `"time":${Math.floor(Date.now() / 1_000)},` : ''
    return `{"id":${JSON.stringify(id)},${time}"changes":[${[...changes.flat(), ...others].join()}]}`
  })
  return `{"object":"${words.object}","entry":[${entries.join()}]}`
}

/** The business account that an update is about. */
export const accountOf = (update: Update) =>
  isItem(update) ? update.number.businessAccountId : update.businessAccountId

const entryOf = (update: Update) => ('entryId' in update ? update.entryId : undefined) ?? accountOf(update)

const metadataOf = ({ number }: ItemUpdate) =>
  JSON.stringify({ display_phone_number: number.displayDigits, phone_number_id: number.phoneNumberId })

function change(metadata: string, kind: ItemUpdate['kind'], updates: ItemUpdate[], { product }: Words) {
  const contacts = new Set(updates.flatMap(({ contact }) => contact ?? []))
  const about = contacts.size > 0 ? `"contacts":[${[...contacts].join()}],` : ''
  const items = updates.map(({ item }) => item).join()
  return `{"value":{"messaging_product":"${product}","metadata":${metadata},${about}"${kind}":[${items}]},"field":"messages"}`
}
