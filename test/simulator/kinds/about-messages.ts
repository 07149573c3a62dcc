import { z } from 'zod'
import type { App } from '../app.ts'
import { tellField } from '../callbacks/tell-field.ts'
import { BadField } from '../control/parse.ts'
import { failedStatusError } from '../graph/graph-error.ts'
import { receiveMessage } from '../messages/receive-message.ts'
import { mintWamid } from '../messages/wamid.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { Block, Digits, headOf, kind, nowSeconds, Seconds } from './kind.ts'
import { tellStatusOf } from './tell-status-of.ts'

/** Who wrote the message, when it is not said. */
function writerOf({ history }: App, number: PhoneNumber, messageId: string, from: string | undefined) {
  const writer = from ?? history.writerOf(messageId, number.phoneNumberId)
  if (writer === undefined) throw new BadField('from', 'The message is not known: say who wrote it.')
  return writer
}

/** A person takes a message back. */
export const revoke = kind(
  { message_id: z.string().min(1), from: Digits.optional() },
  (app, number, { message_id: target, from }) => {
    const message = { type: 'revoke', revoke: { original_message_id: target } }
    return { id: receiveMessage(app, number, { ...message, from: writerOf(app, number, target, from) }, {}) }
  },
)

/** A person writes a message anew: `text`, or a whole `message`. */
export const edit = kind(
  { message_id: z.string().min(1), from: Digits.optional(), text: z.string().optional(), message: Block.optional() },
  (app, number, { message_id: target, from, text = '', message = { type: 'text', text: { body: text } } }) => {
    const edited = { type: 'edit', edit: { original_message_id: target, message } }
    return { id: receiveMessage(app, number, { ...edited, from: writerOf(app, number, target, from) }, {}) }
  },
)

/** The business writes in its phone's app: `text`, or a whole `message`, which may be a revoke or an edit. */
export const echo = kind(
  { to: Digits, text: z.string().optional(), message: Block.optional(), timestamp: Seconds.optional() },
  (app, number, { to, text = 'Hello', message, timestamp = nowSeconds() }) => {
    const id = mintWamid('outbound', to)
    const written = message ?? { type: 'text', text: { body: text } }
    tellField(app, number.businessAccountId, 'smb_message_echoes', {
      ...headOf(app, number),
      message_echoes: [{ from: number.displayDigits, to, id, timestamp, ...written }],
    })
    return { id: typeof written['id'] === 'string' ? written['id'] : id }
  },
)

/** A status of a send, also of one that is not known, for which `to` must be said; `failed` with a code. */
export const status = kind(
  {
    message_id: z.string().min(1),
    status: z.enum(['sent', 'delivered', 'read', 'played', 'failed']),
    code: z.int().default(131026),
    to: Digits.optional(),
    timestamp: Seconds.optional(),
  },
  (app, number, body) => tellStatusOf(app, number, body),
)

/** A voice note was played for the first time. */
export const played = kind(
  { message_id: z.string().min(1), to: Digits.optional(), timestamp: Seconds.optional() },
  (app, number, body) => tellStatusOf(app, number, { ...body, status: 'played', code: 0 }),
)

/** A message of a kind that the platform does not hand on. */
export const unsupported = kind(
  { from: Digits, type: z.string().default('poll'), code: z.int().default(131051) },
  (app, number, { from, type, code }) => {
    const errors = [failedStatusError({ code, details: 'Message type is currently not supported.' })]
    const message = { type: 'unsupported', from, errors, unsupported: { type } }
    return { id: receiveMessage(app, number, message, {}) }
  },
)

/** A person has another number, or another user id: then the one before may be all that names the person. */
export const system = kind(
  {
    from: Digits.optional(),
    wa_id: Digits.optional(),
    user_id: z.string().optional(),
    previous_user_id: z.string().optional(),
  },
  (app, number, { from, wa_id, user_id, previous_user_id }) => {
    const before = from ?? previous_user_id
    if (before === undefined) throw new BadField('from', 'Say who has changed: from, or previous_user_id.')
    const type = wa_id === undefined ? 'user_changed_user_id' : 'user_changed_number'
    const body = `User A changed from ${before} to ${wa_id ?? user_id ?? 'another id'}`
    const told = { body, type, wa_id, user_id, previous_user_id }
    return { id: receiveMessage(app, number, { type: 'system', from, system: told }, {}) }
  },
)

/** A trouble of the number, with no message. */
export const error = kind(
  { code: z.int(), details: z.string().default('Reported by the platform.') },
  (app, number, trouble) =>
    tellField(app, number.businessAccountId, 'messages', {
      ...headOf(app, number),
      errors: [failedStatusError(trouble)],
    }),
)
