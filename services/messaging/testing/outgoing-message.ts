import type { OutgoingMessage } from '../upstream/send.ts'

export const outgoingMessage: OutgoingMessage = {
  phoneNumberId: '106540352242922',
  token: 'token',
  messageId: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  recipient: '+15550123456',
  type: 'text',
  body: { body: 'hi' },
  contextId: null,
  mayBegin: () => true,
}
