import { newId } from '@app/shared/values/ids.ts'
import type { AcceptableSend } from '../sends/insert-sends.ts'

/** A text that is to be accepted, without a key. */
export function newSend(text: string, recipient: string, changes: Partial<AcceptableSend>): AcceptableSend {
  const [conversationId, contactId] = [changes.conversation_id ?? newId('cnv'), newId('ctc')]
  return {
    id: newId('msg'),
    organization_id: newId('org'),
    phone_number_id: '106540352242922',
    conversation_id: conversationId,
    contact_id: contactId,
    type: 'text',
    recipient,
    content: text,
    body: { body: text },
    media: null,
    media_id: null,
    parties: {
      conversation: { id: conversationId, status: 'open', assigned_to: null },
      contact: { id: contactId, phone_number: recipient, name: null },
    },
    context_id: null,
    request_id: newId('req'),
    traceparent: '',
    created_at: new Date().toISOString(),
    key: null,
    fingerprint: null,
    answer: null,
    ...changes,
  }
}
