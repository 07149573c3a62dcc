import type { App } from '../app.ts'
import { GraphError } from '../graph/graph-error.ts'
import { onlyKeys, optionalObject, type Param, requiredText, requiredWord } from '../graph/params.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'

/** A read receipt, perhaps with the typing indicator. */
export function markRead({ history, feed }: App, number: PhoneNumber, receipt: Param, body: string) {
  requiredWord(receipt, 'status', ['read'])
  const messageId = requiredText(receipt, 'message_id')
  const typing = optionalObject(receipt, 'typing_indicator')
  if (typing) {
    onlyKeys(typing, 'type')
    requiredWord(typing, 'type', ['text'])
  }
  if (!history.wasReceived(messageId, number.phoneNumberId))
    throw new GraphError(131009, { details: 'The message_id is not that of a message received by this number.' })
  const person = history.writerOf(messageId, number.phoneNumberId)
  const status = typing ? 'read, and typing' : 'read'
  if (person) feed.add({ type: 'status', id: messageId, status, number: number.phoneNumberId, person })
  history.addReceipt({ at: Date.now(), phoneNumberId: number.phoneNumberId, body })
  return { success: true }
}
