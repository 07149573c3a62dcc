import type { PhoneNumber } from '../numbers/numbers.ts'
import type { Words } from '../words.ts'

/** One thing that callbacks tell: an inbound message or a status. `item` and `contact` are JSON already. */
export interface Update {
  number: PhoneNumber
  kind: 'messages' | 'statuses'
  item: string
  contact: string | undefined
}

/** The JSON body of one callback that tells all of them: an entry per account, a change per number and kind. */
export function callbackBody(updates: Update[], words: Words) {
  const accounts = Map.groupBy(updates, ({ number }) => number.businessAccountId)
  const entries = Array.from(accounts, ([id, ofAccount]) => {
    const changes = Array.from(Map.groupBy(ofAccount, metadataOf), ([metadata, ofNumber]) =>
      Array.from(
        Map.groupBy(ofNumber, ({ kind }) => kind),
        ([kind, ofKind]) => change(metadata, kind, ofKind, words),
      ),
    )
    return `{"id":${JSON.stringify(id)},"changes":[${changes.flat().join()}]}`
  })
  return `{"object":"${words.object}","entry":[${entries.join()}]}`
}

const metadataOf = ({ number }: Update) =>
  JSON.stringify({ display_phone_number: number.displayDigits, phone_number_id: number.phoneNumberId })

function change(metadata: string, kind: Update['kind'], updates: Update[], { product }: Words) {
  const contacts = new Set(updates.flatMap(({ contact }) => contact ?? []))
  const about = contacts.size > 0 ? `"contacts":[${[...contacts].join()}],` : ''
  const items = updates.map(({ item }) => item).join()
  return `{"value":{"messaging_product":"${product}","metadata":${metadata},${about}"${kind}":[${items}]},"field":"messages"}`
}
