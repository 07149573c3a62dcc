import { z } from 'zod'
import type { App } from '../app.ts'
import { parseValue } from '../control/parse.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import { wordsOf } from '../words.ts'

/** Sends the callback of one kind from a few fields; answers what its maker may want to know. */
export type Kind = (app: App, number: PhoneNumber, body: unknown) => object

/** Every kind names the number that it is about. */
export const envelope = { kind: z.string(), phone_number_id: z.string() }

export const Digits = z.string().regex(/^\d{5,15}$/, 'must be digits, without the plus')
export const Seconds = z.string().regex(/^\d{1,12}$/, 'must be epoch seconds, as a string')
export const Block = z.record(z.string(), z.unknown())

/** @throws BadField, when it is used, for a body that the shape refuses */
export function kind<S extends z.ZodRawShape>(
  shape: S,
  send: (app: App, number: PhoneNumber, body: z.output<z.ZodObject<S>>) => object | void,
): Kind {
  const schema = z.object(shape)
  const strict = z.strictObject({ ...envelope, ...shape })
  return (app, number, body) => {
    parseValue(strict, body)
    return send(app, number, parseValue(schema, body)) ?? {}
  }
}

/** How every value of a number begins. */
export const headOf = ({ settings }: App, { displayDigits, phoneNumberId }: PhoneNumber) => ({
  messaging_product: wordsOf(settings.current).product,
  metadata: { display_phone_number: displayDigits, phone_number_id: phoneNumberId },
})

export const nowSeconds = () => `${Math.floor(Date.now() / 1_000)}`
