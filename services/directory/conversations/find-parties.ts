import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { identitiesOf } from '../contacts/identities.ts'
import type { Origin } from '../contacts/identity-updated.ts'
import { newContactIds } from '../contacts/insert-contacts.ts'
import type { Sender } from '../contacts/sender.ts'
import { settleContact } from '../contacts/settle-contact.ts'
import { findSender } from './find-sender.ts'
import { insertConversation } from './insert-conversation.ts'
import type { FoundContact, FoundConversation } from './look-up.ts'
import { untilWon } from '../races.ts'

interface FoundParties {
  contact: FoundContact
  conversation: FoundConversation
}

/**
 * The contact that somebody is, with its conversation; made when nobody is known by the names, with an event if it is to be
 * told. Who was known by number alone is known by a user id as well from then on: that is all there is of whoever hides it.
 */
export async function findParties(
  app: App,
  sender: Sender,
  origin: Origin,
  { isTold }: { isTold: boolean },
): Promise<FoundParties> {
  const identities = identitiesOf(sender)
  return untilWon(async () => {
    const { account, contacts } = await findSender(app, sender, origin)
    if (!account) throw notFound()
    const [contact, ...others] = contacts
    if (!contact) {
      const isMade = await app.insertContact({ ...sender, ...newContactIds(), ...origin, identities, isTold })
      if (isMade && isTold) app.relay.wake()
    } else if (others.length > 0 || (contact.bsuid === null && sender.bsuid !== null)) {
      await settleContact(app, sender, contacts, origin)
    } else {
      const conversation = contact.conversation ?? (await insertConversation(app.sql, origin, contact.id))
      if (conversation) return { contact, conversation }
    }
    return undefined
  })
}
