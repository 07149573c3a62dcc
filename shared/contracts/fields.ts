import { z } from 'zod'
import { idOf } from '../values/ids.ts'
import { bounded } from '../values/moments.ts'

/** Fields that several contracts share. */

/** A moment as the API shows it: UTC, milliseconds, `Z`. */
export const time = z.iso.datetime({ precision: 3 }).meta({ example: '2026-03-01T12:00:00.000Z' })

/** A moment as the API takes it: any ISO 8601 date-time with an offset. Services get one that Postgres reads. */
export const timeInput = z.iso.datetime({ offset: true }).overwrite(bounded)

/** The upstream's id of a number or of a business account. */
export const upstreamId = z.string().regex(/^\d{6,20}$/, 'must be 6 to 20 digits')

export const phoneNumberId = upstreamId.meta({
  description: 'The id of a connected number, 6 to 20 digits.',
  example: '106540352242922',
})

export const phoneParams = z.object({ phone_number_id: phoneNumberId })

/** What zod's own pattern refuses is taken, too: `r&d@`, and the domains of other scripts, `xn--`. */
const emailPattern =
  /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@(?:[a-z\d][a-z\d-]*\.)+[a-z][a-z\d-]*[a-z\d]$/i

/** Described by its format alone. */
export const email = z
  .string()
  .max(255)
  .refine((value) => emailPattern.test(value), 'must be an e-mail address')
  .meta({ format: 'email' })

/** A phone number as the platform writes it: digits. */
export const waId = z.string().regex(/^\d{5,20}$/)

/** A phone number as a caller writes it; what it means is read by `phoneNumberOf`. */
export const phoneNumberInput = z
  .string()
  .refine((number) => number.length >= 1 && number.length <= 40, { params: { failure: 'invalid_phone_number' } })
  .meta({ minLength: 1, maxLength: 40 })

export const bsuid = z
  .string()
  .regex(/^[A-Z]{2}\.[A-Za-z0-9]{1,128}$/, 'must be two capitals, a dot and 1 to 128 letters and digits')
  .meta({ description: 'Business-scoped user id.', example: 'US.13491208655302741918' })

/** Text that Postgres and every client can hold: no U+0000, no lone surrogate; lengths count code points. */
export const text = (min: number, max: number) =>
  z
    .string()
    .refine((value) => !value.includes('\0') && value.isWellFormed(), 'must not hold U+0000 or a lone surrogate')
    .refine((value) => {
      const length = lengthOf(value)
      return length >= min && length <= max
    }, `must have ${min} to ${max} characters`)
    .meta({ minLength: min, maxLength: max })

/** In code points. */
export function lengthOf(value: string) {
  let length = 0
  for (const _ of value) length++
  return length
}

/**
 * One of these words. Others may be added, so clients must bear one that they do not know, and so must a service whose neighbour
 * was upgraded before it: it is described, and parsed, as text.
 */
export const openEnum = <const W extends readonly string[]>(words: W) =>
  z.string().meta(openTo(words)) as unknown as z.ZodType<W[number], W[number]>

/** For the `meta` of text that is only given: described as an `openEnum` is, it lets the words of the next release through. */
export const openTo = (words: readonly string[]) => ({ 'x-extensible-enum': words })

/** Who is on the other side of a conversation, in a few words. */
export const contactSummary = z
  .object({ id: idOf('ctc'), phone_number: z.string().nullable(), name: z.string().nullable() })
  .meta({ id: 'ContactSummary' })

export const labelReference = z.object({ label_id: idOf('lbl') }).meta({ id: 'LabelReference' })

export const chatAccount = z.object({ phone_number: z.string().nullable() }).meta({ id: 'ChatAccount' })

export const messageError = z
  .object({ code: z.string(), message: z.string(), provider_code: z.number().nullable() })
  .meta({ id: 'MessageError' })
