import type { App } from '../app.ts'
import { identitiesOf, isSameIdentity, mayHaveBeen } from '../contacts/identities.ts'
import type { Origin } from '../contacts/identity-updated.ts'
import type { Sender } from '../contacts/sender.ts'
import type { Found } from './look-up.ts'

/**
 * Who is known by a sender's names. A number that nobody has as the platform writes it is that of who was given it in its other
 * writing. And was this message recorded before?
 */
export async function findSender(
  app: App,
  sender: Sender,
  { organizationId, phoneNumberId }: Pick<Origin, 'organizationId' | 'phoneNumberId'>,
  upstreamId?: string,
): Promise<Found> {
  const found = await app.lookUp({ organizationId, phoneNumberId, identities: mayHaveBeen(sender), upstreamId })
  const names = identitiesOf(sender)
  const namesOf = ({ identities }: Found['contacts'][number]) =>
    identities.filter((has) => names.some((name) => isSameIdentity(name, has)))
  const isNumberKnown = found.contacts.some((contact) => namesOf(contact).some(({ kind }) => kind !== 'bsuid'))
  return isNumberKnown ? { ...found, contacts: found.contacts.filter((one) => namesOf(one).length > 0) } : found
}
