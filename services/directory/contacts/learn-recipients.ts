import type { App } from '../app.ts'
import { identitiesOf } from './identities.ts'
import type { Origin } from './identity-updated.ts'
import type { Sender } from './sender.ts'
import { settleContact } from './settle-contact.ts'

/** The recipient of a message whose number the platform writes in another way than it was given (Brazil, Mexico). */
interface Recipient extends Origin {
  /** E.164, as given. */
  phoneNumber: string
  /** Digits, as the platform writes it. */
  waId: string
  sentAt: Date
}

const maxAttempts = 8

/**
 * Contacts learn how the platform writes their numbers, so that the first reply is theirs. Whoever has that number already,
 * as of the address book, is merged into the contact that was written to. Learned again, it changes nothing.
 */
export async function learnRecipients(app: App, recipients: Recipient[]): Promise<void> {
  for (const { phoneNumber, waId, sentAt, ...origin } of recipients) {
    const sender: Sender = { phoneNumber, waId, sentAt, bsuid: null, parentBsuid: null, username: null, name: null }
    await learn(app, sender, origin)
  }
}

async function learn(app: App, sender: Sender, origin: Origin) {
  const identities = identitiesOf(sender)
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { account, contacts } = await app.lookUp({ ...origin, identities })
    const isThere = contacts.some(({ phoneNumber }) => phoneNumber === sender.phoneNumber)
    // The number is somebody else's by now, or the contact was deleted.
    if (!account || !isThere) return
    if (await settleContact(app, sender, contacts, origin)) return
  }
}
