import type { Handler } from '@app/shared/api/contract.ts'
import type { openConversation as contract } from '@app/shared/contracts/directory.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'
import { type Identity, identitiesMeantBy, mayHaveBeen } from '../contacts/identities.ts'
import { hasStopped } from '../contacts/remembered-stops.ts'
import { newContactIds, unknownContact } from '../contacts/insert-contacts.ts'
import { windowUntil } from './conversations.ts'
import { insertConversation } from './insert-conversation.ts'
import type { FoundAccount, FoundContact, FoundConversation } from './look-up.ts'
import { untilWon } from '../races.ts'

type Body = z.output<(typeof contract)['body']>

export const openConversation: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { organizationId, traceparent } = caller
  const { phone_number_id: phoneNumberId } = params
  const identities = identitiesOfRecipient(body)
  return untilWon(async () => {
    const { account, contacts } = await app.lookUp({ organizationId, phoneNumberId, identities })
    if (!account) throw notFound()
    // Two of them: the number was given to one, and is how the platform writes the other's. The first is the one as given.
    const [contact] = contacts
    refuseClosedWindow(account, contacts, body)
    if (!contact) {
      const made = newRecipient(body)
      const person = { organizationId, phoneNumberId, identities: mayHaveBeen(made) }
      if (body.marketing)
        refuseMarketing(account, { hasStopped: await hasStopped(app.sql, person), hasConsented: false })
      const isMade = await app.insertContact({ ...made, organizationId, phoneNumberId, traceparent })
      if (!isMade) return undefined
      app.relay.wake()
      return toAnswer(made, { id: made.conversationId, status: 'open', assignedTo: null, lastInboundAt: null })
    }
    if (body.marketing) refuseMarketing(account, wordOf(contacts))
    const conversation = contact.conversation ?? (await insertConversation(app.sql, caller, contact.id))
    return conversation ? toAnswer(contact, conversation) : undefined
  })
}

// Refused before anything is made, so that a refused send leaves nothing behind. Two contacts are one person: what is true of one is
// true of the other.

function refuseClosedWindow(account: FoundAccount, contacts: FoundContact[], { window }: Body) {
  const isOpen = contacts.some(({ conversation }) => conversation?.isWindowOpen)
  if (window === 'open' && !isOpen && account.windowCheck === 'strict') throw new Problem('outside_24h_window')
}

/** What somebody said of marketing. */
interface Word {
  hasStopped: boolean
  hasConsented: boolean
}

function refuseMarketing({ requireMarketingConsent }: FoundAccount, word: Word) {
  if (word.hasStopped) throw new Problem('marketing_opted_out')
  if (requireMarketingConsent && !word.hasConsented) throw new Problem('consent_required')
}

const wordOf = (contacts: FoundContact[]): Word => ({
  hasStopped: contacts.some(({ marketingPreference }) => marketingPreference === 'stop'),
  hasConsented: contacts.some(hasConsented),
})

const hasConsented = ({ conversation, marketingPreference, marketingConsent }: FoundContact) =>
  (conversation?.lastInboundAt ?? null) !== null || marketingPreference === 'resume' || marketingConsent

function identitiesOfRecipient({ recipient }: Body): Identity[] {
  if ('bsuid' in recipient) return [{ kind: 'bsuid', value: recipient.bsuid }]
  return identitiesMeantBy(recipient.phone_number)
}

/** The number as the platform writes it is known when somebody writes from it, so a new contact is not known by that yet. */
function newRecipient({ recipient }: Body) {
  const ids = newContactIds()
  if ('bsuid' in recipient) {
    const { bsuid } = recipient
    return {
      ...unknownContact,
      ...ids,
      phoneNumber: null,
      bsuid,
      identities: [{ kind: 'bsuid' as const, value: bsuid }],
    }
  }
  const phoneNumber = recipient.phone_number
  return { ...unknownContact, ...ids, phoneNumber, identities: [{ kind: 'phone' as const, value: phoneNumber }] }
}

const toAnswer = (
  contact: Pick<FoundContact, 'id' | 'phoneNumber' | 'name'>,
  conversation: Omit<FoundConversation, 'isWindowOpen'>,
) => ({
  conversation: { id: conversation.id, status: conversation.status, assigned_to: conversation.assignedTo },
  contact: { id: contact.id, phone_number: contact.phoneNumber, name: contact.name },
  window_until: windowUntil(conversation.lastInboundAt),
})
