import { z } from 'zod'

const text = z.string().catch('')
const optional = z.string().nullable().catch(null).default(null)

const reply = z.looseObject({ title: text }).nullish().catch(null)

/** The types of `message.received`; what the platform sends beside them is a row of type `unsupported`. */
const kinds = {
  text: z.looseObject({ body: text }).transform(({ body }) => body),
  image: z.looseObject({ caption: optional }).transform(({ caption }) => caption),
  document: z.looseObject({ caption: optional }).transform(({ caption }) => caption),
  video: z.looseObject({ caption: optional }).transform(({ caption }) => caption),
  audio: z.unknown().transform(() => null),
  location: z
    .looseObject({ latitude: z.number(), longitude: z.number(), name: optional })
    .transform(({ latitude, longitude, name }) => name ?? `${latitude},${longitude}`),
  contacts: z
    .array(
      z
        .looseObject({ name: z.looseObject({ formatted_name: text }) })
        .nullable()
        .catch(null),
    )
    .transform(([first]) => first?.name.formatted_name ?? null),
  interactive: z
    .looseObject({
      button_reply: reply,
      list_reply: reply,
    })
    .transform(({ button_reply, list_reply }) => button_reply?.title ?? list_reply?.title ?? null),
  reaction: z.looseObject({ emoji: z.string().catch('').default('') }).transform(({ emoji }) => emoji),
  button: z.looseObject({ text }).transform((button) => button.text),
} as const

type Kind = keyof typeof kinds

export interface Contents {
  type: string
  content: string | null
  /** The kind behind a message that we do not show, such as `sticker` or `edit`. */
  unsupported: string | null
}

/** What is read of an inbound message. A block that does not fit its type has no content; the message counts all the same. */
export function contentsOf(message: Record<string, unknown>): Contents {
  const type = typeof message['type'] === 'string' ? message['type'] : 'unknown'
  if (!isKind(type)) return { type: 'unsupported', content: null, unsupported: subKindOf(type, message) }
  const read = kinds[type].safeParse(message[type])
  return { type, content: read.success ? read.data : null, unsupported: null }
}

/** The type's own block: a type may be called like what every object has. */
export const blockOf = (message: Record<string, unknown>, type: string): unknown =>
  Object.hasOwn(message, type) ? message[type] : undefined

const isKind = (type: string): type is Kind => Object.hasOwn(kinds, type)

/** The kind behind a message that is not shown; of one that the platform does not hand on, what it says of it. */
export function subKindOf(type: string, message: Record<string, unknown>) {
  if (type !== 'unsupported') return type
  return z.looseObject({ type: z.string() }).safeParse(message['unsupported']).data?.type ?? 'unknown'
}
