/** One of the names that a contact is known by on a number. */
export interface Identity {
  kind: 'phone' | 'wa_id' | 'bsuid'
  value: string
}

/** What a phone number may be known as: the number as given, and as the platform writes it. */
export const identitiesOfPhone = (phoneNumber: string): Identity[] => [
  { kind: 'phone', value: phoneNumber },
  { kind: 'wa_id', value: phoneNumber.slice(1) },
]

interface Names {
  phoneNumber: string | null
  waId: string | null
  bsuid: string | null
}

/** All the names in a message; who has one of them has sent it. */
export const identitiesOf = ({ phoneNumber, waId, bsuid }: Names): Identity[] => [
  ...(phoneNumber === null ? [] : identitiesOfPhone(phoneNumber)),
  ...(waId === null || phoneNumber === `+${waId}` ? [] : [{ kind: 'wa_id' as const, value: waId }]),
  ...(bsuid === null ? [] : [{ kind: 'bsuid' as const, value: bsuid }]),
]

export const isSameIdentity = (a: Identity, b: Identity): boolean => a.kind === b.kind && a.value === b.value
