/**
 * The platform's words and ours. Three differ: `messaging_product`, the webhook's `object`, and the key `wa_id`. (A fourth,
 * the interactive type `button`, belongs to the interactive block.)
 */
const product = { ours: 'chat', theirs: 'whatsapp' } as const
const envelope = { ours: 'chat_business_account', theirs: 'whatsapp_business_account' } as const
const identity = { ours: 'chat_id', theirs: 'wa_id' } as const

export const theirProduct = product.theirs
export const theirEnvelope = envelope.theirs
export const ourEnvelope = envelope.ours

/** A value of the platform in our words: `wa_id` is renamed wherever it is a key, other keys stay. */
export function toOurWords(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toOurWords)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (key === 'messaging_product') return [key, product.ours]
      return [key === identity.theirs ? identity.ours : key, toOurWords(item)]
    }),
  )
}
