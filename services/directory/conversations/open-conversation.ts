import type { Handler } from '@app/shared/api/contract.ts'
import type { openConversation as contract } from '@app/shared/contracts/directory.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'
import { type Identity, identitiesMeantBy, mayHaveBeen } from '../contacts/identities.ts'
import { hasStopped, type Person } from '../contacts/remembered-stops.ts'
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
    refuse(account, contacts, body)
    if (!contact) {
      const made = newRecipient(body)
      const person = { organizationId, phoneNumberId, identities: mayHaveBeen(made) }
      if (body.marketing) await refuseStranger(app, account, person)
      const isMade = await app.insertContact({ ...made, organizationId, phoneNumberId, traceparent })
      if (!isMade) return undefined
      app.relay.wake()
      return toAnswer(made, { id: made.conversationId, status: 'open', assignedTo: null, lastInboundAt: null })
    }
    const conversation = contact.conversation ?? (await insertConversation(app.sql, caller, contact.id))
    return conversation ? toAnswer(contact, conversation) : undefined
  })
}

/** Before anything is made, so that a refused send leaves nothing behind. Two of them are one person: the word of one is the other's. */
function refuse(account: FoundAccount, contacts: FoundContact[], { window, marketing }: Body) {
  const isOpen = contacts.some(({ conversation }) => conversation?.isWindowOpen)
  if (window === 'open' && !isOpen && account.windowCheck === 'strict') throw new Problem('outside_24h_window')
  // A stranger's opt-out is looked up, and told before a consent that is missing.
  if (!marketing || contacts.length === 0) return
  if (contacts.some(({ marketingPreference }) => marketingPreference === 'stop'))
    throw new Problem('marketing_opted_out')
  if (account.requireMarketingConsent && !contacts.some(hasConsented)) throw new Problem('consent_required')
}

async function refuseStranger({ sql }: App, account: FoundAccount, person: Person) {
  if (await hasStopped(sql, person)) throw new Problem('marketing_opted_out')
  if (account.requireMarketingConsent) throw new Problem('consent_required')
}

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
