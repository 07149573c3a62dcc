import type { Caller } from '@app/shared/api/contract.ts'
import { contactIdentityUpdated } from '@app/shared/contracts/contacts.ts'
import { type Recorded, recorded } from '@app/shared/events/events.ts'
import type { Profile } from './sender.ts'

/** Whom a change is made for, and on which number. */
export interface Origin extends Pick<Caller, 'organizationId' | 'traceparent'> {
  phoneNumberId: string
}

/**
 * Whether subscribers are told of an identity: a known bsuid was replaced, or the phone number of a contact that was known
 * by bsuid alone came to light. That a contact's first message brings its bsuid is no change of identity.
 */
export const isIdentityUpdate = (before: Profile, after: Profile): boolean =>
  before.phoneNumber !== after.phoneNumber ||
  (before.bsuid !== null && before.bsuid !== after.bsuid) ||
  (before.parentBsuid !== null && before.parentBsuid !== after.parentBsuid)

export const identityUpdated = (id: string, before: Profile, after: Profile, origin: Origin): Recorded =>
  recorded(
    contactIdentityUpdated,
    {
      contact: {
        id,
        object: 'contact',
        phone_number: after.phoneNumber,
        name: after.name,
        phone_number_id: origin.phoneNumberId,
      },
      previous: namesIn(before),
      current: namesIn(after),
      changed_at: new Date().toISOString(),
    },
    origin,
  )

const namesIn = ({ bsuid, parentBsuid, phoneNumber }: Profile) => ({
  bsuid,
  parent_bsuid: parentBsuid,
  phone_number: phoneNumber,
})
