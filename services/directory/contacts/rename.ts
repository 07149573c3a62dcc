import type { Change } from './identity-changes.ts'
import type { Profile } from './sender.ts'

/**
 * What is known of a contact after its person got new names. Only a name that it has as `previous` is replaced, so that
 * two changes end the same in either order; one that is empty is filled.
 */
export function rename(known: Profile, { previous, current }: Pick<Change, 'previous' | 'current'>): Profile {
  const isOfNumber = current.wa_id !== null && hasNumber(known, previous.wa_id ?? current.wa_id)
  const isOfUser = current.bsuid !== null && (known.bsuid === null || isOr(previous.bsuid, known.bsuid))
  return {
    ...known,
    ...(isOfNumber && { phoneNumber: numberAfter(known, previous.wa_id, current.wa_id), waId: current.wa_id }),
    ...(isOfUser && { bsuid: current.bsuid, parentBsuid: current.parent_bsuid ?? known.parentBsuid }),
  }
}

const isOr = (previous: string | null, known: string) => previous === null || previous === known

const hasNumber = ({ phoneNumber, waId }: Profile, digits: string) =>
  (phoneNumber === null && waId === null) || waId === digits || phoneNumber === `+${digits}`

/** A number as it was given stays, however the platform writes it, until the person has another one. */
const numberAfter = ({ phoneNumber }: Profile, previous: string | null, current: string | null) =>
  phoneNumber !== null && (previous === null || previous === current) ? phoneNumber : current && `+${current}`
