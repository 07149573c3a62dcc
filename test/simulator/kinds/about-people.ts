import { z } from 'zod'
import { tellField } from '../callbacks/tell-field.ts'
import { isUserId } from '../messages/recipient.ts'
import { mintWamid } from '../messages/wamid.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { Block, Digits, headOf, kind, nowSeconds, Seconds } from './kind.ts'

const UserId = z.string().refine(isUserId, 'must be a business-scoped user id')

/** A person has another user id. */
export const userIdUpdate = kind(
  {
    wa_id: Digits.optional(),
    previous: UserId,
    current: UserId,
    parent: z.strictObject({ previous: UserId, current: UserId }).optional(),
    timestamp: Seconds.optional(),
  },
  (app, number, { wa_id: waId, previous, current, parent, timestamp = nowSeconds() }) =>
    tellField(app, number.businessAccountId, 'user_id_update', {
      ...headOf(app, number),
      contacts: [{ wa_id: waId, user_id: current, parent_user_id: parent?.current }],
      user_id_update: [
        {
          wa_id: waId,
          detail: 'The user id has changed.',
          user_id: { previous, current },
          parent_user_id: parent,
          timestamp,
        },
      ],
    }),
)

/** A person stops marketing messages, or resumes them. */
export const userPreferences = kind(
  {
    wa_id: Digits.optional(),
    user_id: UserId.optional(),
    value: z.enum(['stop', 'resume']),
    timestamp: Seconds.optional(),
  },
  (app, number, { wa_id: waId, user_id: userId, value, timestamp = nowSeconds() }) => {
    const name = `User ${(waId ?? userId ?? '').slice(-4)}`
    const detail = `User requested to ${value} marketing messages`
    tellField(app, number.businessAccountId, 'user_preferences', {
      ...headOf(app, number),
      contacts: [{ profile: { name }, wa_id: waId, user_id: userId }],
      user_preferences: [
        { wa_id: waId, user_id: userId, detail, category: 'marketing_messages', value, timestamp: Number(timestamp) },
      ],
    })
  },
)

/** The address book of the business's phone: each entry is added, or removed. */
export const contactSync = kind(
  {
    contacts: z
      .array(
        z.strictObject({
          phone_number: Digits,
          full_name: z.string().optional(),
          first_name: z.string().optional(),
          action: z.enum(['add', 'remove']).default('add'),
          timestamp: Seconds.optional(),
        }),
      )
      .min(1),
  },
  (app, number, { contacts }) =>
    tellField(app, number.businessAccountId, 'smb_app_state_sync', {
      ...headOf(app, number),
      state_sync: contacts.map(({ action, timestamp = nowSeconds(), ...contact }) => ({
        type: 'contact',
        // Of somebody who is removed the phone number alone is told.
        contact: action === 'remove' ? { phone_number: contact.phone_number } : contact,
        action,
        metadata: { timestamp },
      })),
    }),
)

/** Of somebody who hides the number there is the user id alone. */
const Person = { with: Digits.optional(), user_id: UserId.optional() }
type Person = z.output<z.ZodObject<typeof Person>>

const Line = z.strictObject({
  /** `business` or `person`: who wrote it. */
  by: z.enum(['business', 'person']).default('person'),
  text: z.string().optional(),
  /** The whole message instead, such as a `media_placeholder`. */
  message: Block.optional(),
  status: z.enum(['DELIVERED', 'ERROR', 'PENDING', 'PLAYED', 'READ', 'SENT']).default('READ'),
  timestamp: Seconds.optional(),
})
type Line = z.output<typeof Line>

const Thread = z
  .strictObject({ ...Person, messages: z.array(Line) })
  .refine((person) => person.with !== undefined || person.user_id !== undefined, 'must say with whom')

/** A chunk of what was written before the number was connected, or that the business does not share it. */
export const history = kind(
  {
    phase: z.int().min(0).max(2).default(0),
    chunk_order: z.int().min(1).default(1),
    progress: z.int().min(0).max(100).default(100),
    threads: z.array(Thread).default([]),
    declined: z.boolean().default(false),
  },
  (app, number, { phase, chunk_order: order, progress, threads, declined }) => {
    const told = threads.map(({ messages, ...person }) => {
      const { with: waId, user_id: userId } = person
      return {
        id: waId,
        ...(userId !== undefined && { context: { wa_id: waId, user_id: userId } }),
        messages: messages.map((line) => lineOf(number, person, line)),
      }
    })
    const chunk = declined
      ? { errors: [declinedError] }
      : { metadata: { phase, chunk_order: order, progress }, threads: told }
    tellField(app, number.businessAccountId, 'history', { ...headOf(app, number), history: [chunk] })
    return { ids: told.flatMap(({ messages }) => messages.map(({ id }) => id)) }
  },
)

function lineOf(number: PhoneNumber, person: Person, { by, text = 'Hello', message, status, timestamp }: Line) {
  return {
    ...partiesOf(number, person, by),
    id: mintWamid(by === 'business' ? 'outbound' : 'inbound', person.with ?? person.user_id ?? ''),
    timestamp: timestamp ?? nowSeconds(),
    ...(message ?? { type: 'text', text: { body: text } }),
    history_context: { status },
  }
}

const partiesOf = (number: PhoneNumber, { with: waId, user_id: userId }: Person, by: Line['by']) =>
  by === 'business'
    ? { from: number.displayDigits, to: waId, to_user_id: userId }
    : { from: waId, from_user_id: userId }

/** The files of messages that the history told without them: those of people, and in a list of its own the business's. */
export const historyFiles = kind(
  {
    files: z
      .array(
        z.strictObject({
          message_id: z.string().min(1),
          ...Person,
          by: Line.shape.by,
          message: Block,
          timestamp: Seconds.optional(),
        }),
      )
      .min(1),
  },
  (app, number, { files }) => {
    const listOf = (by: Line['by']) =>
      files
        .filter((file) => file.by === by)
        .map(({ message_id: id, message, timestamp = nowSeconds(), ...person }) => ({
          ...partiesOf(number, person, by),
          id,
          timestamp,
          ...message,
        }))
    const [messages, echoes] = [listOf('person'), listOf('business')]
    tellField(app, number.businessAccountId, 'history', {
      ...headOf(app, number),
      ...(messages.length > 0 && { messages }),
      ...(echoes.length > 0 && { message_echoes: echoes }),
    })
  },
)

const declinedError = {
  code: 2593109,
  title: 'History sync is turned off by the business from the WhatsApp Business App',
  message: 'History sharing is turned off by the business from the WhatsApp Business App',
  error_data: { details: 'History sharing is turned off by the business' },
}
