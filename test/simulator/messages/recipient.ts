import { badParameter, GraphError } from '../graph/graph-error.ts'
import { optionalText, type Param } from '../graph/params.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'

const bsuid = /^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$/

export const isUserId = (text: string) => bsuid.test(text)

/** Whom a message is for: a phone user by `waId`, or a business-scoped `userId`; `input` is what the caller wrote. */
export interface Recipient {
  input: string
  waId?: string | undefined
  userId?: string | undefined
}

/** The one id by which a recipient is remembered. */
export const recipientKey = ({ waId, userId, input }: Recipient) => waId ?? userId ?? input

/** `to` wins over `recipient`. */
export function checkRecipient(message: Param, number: PhoneNumber): Recipient {
  const to = optionalText(message, 'to')
  const recipient = optionalText(message, 'recipient')
  if (to !== undefined) return phoneUser(to, number)
  if (recipient === undefined) throw badParameter('The parameter to is required.')
  if (!isUserId(recipient)) throw new GraphError(131009, { details: 'The recipient is not a business-scoped user id.' })
  return { input: recipient, userId: recipient }
}

function phoneUser(input: string, number: PhoneNumber): Recipient {
  const digits = input.replaceAll(/[+\-() ]/g, '')
  if (!/^\d{7,15}$/.test(digits))
    throw new GraphError(131009, { details: 'The phone number is malformed: Please use the format: +1234567890.' })
  const waId = waIdOf(input.includes('+') ? digits : withCountry(digits))
  if (waId === number.displayDigits)
    throw new GraphError(131021, { details: 'The recipient phone number is that of the sender.' })
  return { input, waId }
}

/** The trap of a number without `+`: what looks national gets the country code of the sender, here always +1. */
const withCountry = (digits: string) => (digits.length <= 10 ? `1${digits}` : digits)

/** The id under which the platform knows a phone: Mexican mobiles get a 1, most Brazilian ones lose their ninth digit. */
export function waIdOf(digits: string) {
  if (/^52\d{10}$/.test(digits)) return `521${digits.slice(2)}`
  if (/^55[3-9]\d9\d{8}$/.test(digits)) return digits.slice(0, 4) + digits.slice(5)
  return digits
}
