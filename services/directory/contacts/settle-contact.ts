import type { App } from '../app.ts'
import { insertConversation } from '../conversations/insert-conversation.ts'
import type { Inbound } from '../conversations/insert-inbounds.ts'
import type { FoundContact } from '../conversations/look-up.ts'
import { identitiesOf, isSameIdentity } from './identities.ts'
import type { Origin } from './identity-updated.ts'
import { newContactIds } from './insert-contacts.ts'
import { mergeContacts } from './merge-contacts.ts'
import { isSameProfile, learn, type Sender } from './sender.ts'
import { teachContact } from './teach-contact.ts'

type Parties = Pick<Inbound, 'contact' | 'conversationId'>

/**
 * Makes of the contacts that a sender's names were found to mean the one that wrote: new, taught what the message tells of
 * it, or merged of several. Null when another call was faster, or they were merged: look again.
 */
export async function settleContact(
  app: App,
  sender: Sender,
  found: FoundContact[],
  origin: Origin,
): Promise<Parties | null> {
  const [contact, ...others] = found
  if (!contact) return makeContact(app, sender, origin)
  if (others.length > 0) {
    await mergeContacts(app, sender, found, origin)
    return null
  }
  const after = learn(contact, sender, contact.conversation?.lastInboundAt ?? null)
  const identities = identitiesOf(sender).filter((name) => !contact.identities.some((has) => isSameIdentity(has, name)))
  const isKnown = isSameProfile(contact, after) && identities.length === 0
  const { id } = contact
  if (!isKnown && !(await teachContact(app, { id, before: contact, after, identities }, origin))) return null
  const conversation = contact.conversation ?? (await insertConversation(app.sql, origin, id))
  return (
    conversation && {
      contact: { id, phoneNumber: after.phoneNumber, name: after.name },
      conversationId: conversation.id,
    }
  )
}

async function makeContact(app: App, sender: Sender, origin: Origin): Promise<Parties | null> {
  const ids = newContactIds()
  const isMade = await app.insertContact({ ...sender, ...ids, ...origin, identities: identitiesOf(sender) })
  if (!isMade) return null
  app.relay.wake()
  const { phoneNumber, name } = sender
  return { contact: { id: ids.id, phoneNumber, name }, conversationId: ids.conversationId }
}
