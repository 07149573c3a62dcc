import type { Settings } from './settings.ts'

/** The three words in which the platform's own language and the neutral one differ. */
const vocabularies = {
  platform: { product: 'whatsapp', object: 'whatsapp_business_account', personId: 'wa_id' },
  neutral: { product: 'chat', object: 'chat_business_account', personId: 'chat_id' },
} as const

export type Words = (typeof vocabularies)[Settings['words']]

export const wordsOf = (settings: Settings): Words => vocabularies[settings.words]

/** A copy in which every key `wa_id`, however deep, is the word in use. */
export function renamePersonIds(value: unknown, words: Words): unknown {
  if (words.personId === 'wa_id' || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => renamePersonIds(item, words))
  const renamed = Object.entries(value).map(([key, item]) => [
    key === 'wa_id' ? words.personId : key,
    renamePersonIds(item, words),
  ])
  return Object.fromEntries(renamed)
}
