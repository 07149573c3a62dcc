import { randomBytes, randomInt } from 'node:crypto'
import { z } from 'zod'

export const NumberStatus = z.enum([
  'CONNECTED',
  'PENDING',
  'UNVERIFIED',
  'DISCONNECTED',
  'FLAGGED',
  'RESTRICTED',
  'RATE_LIMITED',
  'BANNED',
  'MIGRATED',
  'DELETED',
  'UNKNOWN',
])

/** A business phone number, with the one token that may use it. */
export const PhoneNumber = z.strictObject({
  phoneNumberId: z.string(),
  businessAccountId: z.string(),
  /** E.164 without the plus, as callbacks write it. */
  displayDigits: z.string(),
  verifiedName: z.string(),
  status: NumberStatus,
  accessToken: z.string(),
  /** Of the two-step verification; null until the first registration. */
  pin: z.string().nullable().default(null),
  /** Also in use in the phone's app: then it is never registered. */
  isInBusinessApp: z.boolean().default(false),
  /** Sends in a second, in place of the setting for all numbers; null: as that says. */
  throughputPerSecond: z.int().min(1).nullable().default(null),
})
export type PhoneNumber = z.output<typeof PhoneNumber>

interface Wanted {
  phoneNumberId?: string | undefined
  businessAccountId?: string | undefined
  status?: PhoneNumber['status'] | undefined
  throughputPerSecond?: number | null | undefined
}

export type Numbers = ReturnType<typeof createNumbers>

export function createNumbers(known: PhoneNumber[]) {
  const byId = new Map<string, PhoneNumber>()
  const byToken = new Map<string, PhoneNumber>()
  known.forEach(keep)

  function keep(number: PhoneNumber) {
    byId.set(number.phoneNumberId, number)
    byToken.set(number.accessToken, number)
    return number
  }

  /** The number of this id, changed where something is wanted; a new one when the id is new or absent. */
  function put({ phoneNumberId = randomId(), businessAccountId, status, throughputPerSecond }: Wanted) {
    const number = byId.get(phoneNumberId) ?? newNumber(phoneNumberId)
    return keep({
      ...number,
      businessAccountId: businessAccountId ?? number.businessAccountId,
      status: status ?? number.status,
      throughputPerSecond: throughputPerSecond === undefined ? number.throughputPerSecond : throughputPerSecond,
    })
  }

  /** @throws for a number that is not there */
  function change(phoneNumberId: string, part: Partial<PhoneNumber>) {
    const number = byId.get(phoneNumberId)
    if (!number) throw new Error(`no number ${phoneNumberId}`)
    return keep({ ...number, ...part })
  }

  return {
    put,
    change,
    find: (phoneNumberId: string) => byId.get(phoneNumberId),
    ofToken: (accessToken: string) => byToken.get(accessToken),
    all: () => [...byId.values()],
  }
}

/** 15 digits, as the platform's ids have. */
export const randomId = () =>
  `1${randomInt(1e7).toString().padStart(7, '0')}${randomInt(1e7).toString().padStart(7, '0')}`

const newNumber = (phoneNumberId: string): PhoneNumber => ({
  phoneNumberId,
  businessAccountId: randomId(),
  displayDigits: `1555${phoneNumberId.slice(-7).padStart(7, '0')}`,
  verifiedName: 'Simulated Business',
  status: 'CONNECTED',
  accessToken: `EAA${randomBytes(48).toString('base64url')}`,
  pin: null,
  isInBusinessApp: false,
  throughputPerSecond: null,
})

/** `+1 555-078-3881`, as the platform shows a number where people read it. */
export const displayPhoneNumber = ({ displayDigits: d }: PhoneNumber) =>
  `+${d.slice(0, -10)} ${d.slice(-10, -7)}-${d.slice(-7, -4)}-${d.slice(-4)}`
