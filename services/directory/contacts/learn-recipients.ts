import { createLines, type InLine } from '@app/shared/work/turns.ts'
import type { App } from '../app.ts'
import type { FoundContact } from '../conversations/look-up.ts'
import { type Identity, identitiesOf } from './identities.ts'
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
/** Contacts that are written at a time: each holds a connection, and senders and receivers need some. */
const writesAtOnce = 4

/**
 * Contacts learn how the platform writes their numbers, so that the first reply is theirs. Whoever has that number already, from
 * the address book or as it was given, is merged into the contact that was written to. Learned again, it changes nothing.
 */
export async function learnRecipients(app: App, recipients: Recipient[]): Promise<void> {
  const inLine = createLines(writesAtOnce)
  const people = Map.groupBy(recipients, ({ organizationId, phoneNumberId, waId }) =>
    [organizationId, phoneNumberId, waId].join(),
  )
  await Promise.all(people.values().map((ofOne) => learnInOrder(app, inLine, ofOne)))
}

async function learnInOrder(app: App, inLine: InLine, recipients: Recipient[]) {
  for (const { phoneNumber, waId, sentAt, ...origin } of recipients) {
    const sender: Sender = { phoneNumber, waId, sentAt, bsuid: null, parentBsuid: null, username: null, name: null }
    const identities: Identity[] = [...identitiesOf(sender), { kind: 'phone', value: `+${waId}` }]
    await learn(app, inLine, sender, identities, origin)
  }
}

async function learn(app: App, inLine: InLine, sender: Sender, identities: Identity[], origin: Origin) {
  const isRecipient = ({ phoneNumber }: FoundContact) => phoneNumber === sender.phoneNumber
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const { account, contacts } = await app.lookUp({ ...origin, identities })
    // The number is somebody else's by now, or the contact was deleted.
    if (!account || !contacts.some(isRecipient)) return
    const found = contacts.toSorted((a, b) => Number(isRecipient(b)) - Number(isRecipient(a)))
    if (await inLine('', () => settleContact(app, sender, found, origin))) return
  }
}
