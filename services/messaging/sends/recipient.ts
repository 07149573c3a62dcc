import { phoneNumberOf } from '@app/shared/values/phone-number.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'

const bsuid = /^[A-Z]{2}\.[A-Za-z0-9]{1,128}$/
const read = mostRecent<string, string>(50_000)

/**
 * The recipient of a send: `+E164`, or a bsuid as it is. A number without `+` is read as international; it must be
 * possible, not valid, since number plans change. Throws `invalid_phone_number`.
 */
export function recipientOf(to: string): string {
  const known = read.get(to)
  if (known !== undefined) return known
  const recipient = bsuid.test(to) ? to : phoneNumberOf(to, 'to')
  read.set(to, recipient)
  return recipient
}
