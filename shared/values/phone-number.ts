import { parsePhoneNumberFromString } from 'libphonenumber-js/min'
import { Problem } from '../api/problem.ts'

/**
 * A phone number as E.164: with or without `+` (then read as international), spaces, dashes, parentheses. It must be
 * possible, not valid, since number plans change. Throws `invalid_phone_number`.
 */
export function phoneNumberOf(text: string, param: string): string {
  // In a query a `+` that is not percent-encoded arrives as a space.
  const trimmed = text.trim()
  if (!/^\+?[\d\s().-]+$/.test(trimmed)) throw new Problem('invalid_phone_number', { param })
  const number = toE164(trimmed)
  if (number === null) throw new Problem('invalid_phone_number', { param })
  return number
}

/**
 * Numbers by which the platform still knows their owners, who write in with them, though their country has another plan
 * now: Mexican mobiles (2019), Ivory Coast (2021), Benin (2024).
 */
const planBefore = /^\+(521\d{10}|225\d{8}|229\d{8})$/

/** `+1 555-078-3881`, as the platform shows a number where people read it, in E.164; null when it cannot be a number. */
export function toE164(displayed: string): string | null {
  const digits = `+${displayed.replaceAll(/\D/g, '')}`
  if (planBefore.test(digits)) return digits
  const phone = parsePhoneNumberFromString(digits)
  return phone?.isPossible() ? phone.number : null
}

const mexican = /^\+52(1?)(\d{10})$/
const brazilianMobile = /^\+55(\d\d)(9?)([6-9]\d{7})$/

/**
 * The other way in which the same person's number is written: with and without the 1 of Mexican mobiles, and the 9 of
 * Brazilian ones. The platform keeps to the one under which the person registered, whichever it is given. Null for all other numbers.
 */
export function otherWritingOf(e164: string): string | null {
  const [, one, mexicans] = mexican.exec(e164) ?? []
  if (mexicans !== undefined) return `+52${one === '' ? '1' : ''}${mexicans}`
  const [, area, nine, brazilians] = brazilianMobile.exec(e164) ?? []
  return brazilians === undefined ? null : `+55${area}${nine === '' ? '9' : ''}${brazilians}`
}

/** A number in E.164 as people read it: `+1 555 078 3881`. */
export const displayPhoneNumber = (e164: string): string =>
  parsePhoneNumberFromString(e164)?.formatInternational() ?? e164
