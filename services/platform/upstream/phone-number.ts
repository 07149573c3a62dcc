import { parsePhoneNumberFromString } from 'libphonenumber-js'

/** `+1 555-078-3881`, as the platform shows a number where people read it, in E.164; null when it cannot be a number. */
export function toE164(displayed: string): string | null {
  const phone = parsePhoneNumberFromString(`+${displayed.replaceAll(/\D/g, '')}`)
  return phone?.isPossible() ? phone.number : null
}
