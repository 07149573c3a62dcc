import { type PhoneNumber, parsePhoneNumberFromString } from 'libphonenumber-js/min'
import { Problem } from './problem.ts'

/**
 * A phone number as E.164: with or without `+` (then read as international), spaces, dashes, parentheses. It must be
 * possible, not valid, since number plans change. Throws `invalid_phone_number`.
 */
export function phoneNumberOf(text: string, param: string): string {
  // In a query a `+` that is not percent-encoded arrives as a space.
  const trimmed = text.trim()
  if (!/^\+?[\d\s().-]+$/.test(trimmed)) throw new Problem('invalid_phone_number', { param })
  const number = parsePhoneNumberFromString(`+${trimmed.replaceAll(/\D/g, '')}`)
  if (!number || !isPossible(number)) throw new Problem('invalid_phone_number', { param })
  return number.number
}

/** `+1 555-078-3881`, as the platform shows a number where people read it, in E.164; null when it cannot be a number. */
export function toE164(displayed: string): string | null {
  const phone = parsePhoneNumberFromString(`+${displayed.replaceAll(/\D/g, '')}`)
  return phone && isPossible(phone) ? phone.number : null
}

/**
 * The platform still writes mobile numbers of Mexico with the 1 that its plan gave up in 2019, as in the `from` of what such
 * a customer sends: who answers there must be understood.
 */
const isPossible = (number: PhoneNumber): boolean =>
  number.isPossible() || (number.countryCallingCode === '52' && /^1\d{10}$/.test(number.nationalNumber))

/** A number in E.164 as people read it: `+1 555 078 3881`. */
export const displayPhoneNumber = (e164: string): string =>
  parsePhoneNumberFromString(e164)?.formatInternational() ?? e164
