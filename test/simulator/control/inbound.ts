import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { App } from '../app.ts'
import { isUserId } from '../messages/recipient.ts'
import { receiveMessage } from '../messages/receive-message.ts'
import { BadField, parseBody } from './parse.ts'

const Digits = z.string().regex(/^\d{5,15}$/, 'must be digits, without the plus')
const UserId = z.string().refine(isUserId, 'must be a business-scoped user id')

const Body = z.strictObject({
  phone_number_id: z.string(),
  message: z.looseObject({
    type: z.string().min(1),
    from: Digits.optional(),
    from_user_id: UserId.optional(),
    id: z.string().min(1).optional(),
    timestamp: z
      .string()
      .regex(/^\d{1,12}$/, 'must be epoch seconds, as a string')
      .optional(),
  }),
  contact: z
    .strictObject({
      profile: z.record(z.string(), z.unknown()).optional(),
      wa_id: Digits.optional(),
      user_id: UserId.optional(),
      parent_user_id: UserId.optional(),
    })
    .default({}),
})

/** Somebody writes to a number. */
export function controlInbound(app: App, http: FastifyInstance) {
  http.post('/control/inbound', (request) => {
    const { phone_number_id: phoneNumberId, message, contact } = parseBody(Body, request.body)
    const number = app.numbers.find(phoneNumberId)
    if (!number) throw new BadField('phone_number_id', 'No number of this id: POST /control/numbers makes one.')
    if (!(message.from ?? message.from_user_id ?? contact.wa_id ?? contact.user_id))
      throw new BadField('message.from', 'Somebody must have written: from, or from_user_id.')
    return { id: receiveMessage(app, number, message, contact) }
  })
}
