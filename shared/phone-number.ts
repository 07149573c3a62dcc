import { parsePhoneNumberFromString } from 'libphonenumber-js/min'
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
  if (!number?.isPossible()) throw new Problem('invalid_phone_number', { param })
  return number.number
}

/** `+1 555-078-3881`, as the platform shows a number where people read it, in E.164; null when it cannot be a number. */
export function toE164(displayed: string): string | null {
  const phone = parsePhoneNumberFromString(`+${displayed.replaceAll(/\D/g, '')}`)
  return phone?.isPossible() ? phone.number : null
}

/** A number in E.164 as people read it: `+1 555 078 3881`. */
export const displayPhoneNumber = (e164: string): string =>
  parsePhoneNumberFromString(e164)?.formatInternational() ?? e164
