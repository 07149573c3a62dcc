import { createBoundedMap } from '../bounded-map.ts'
import { directionOf } from './wamid.ts'

/** An accepted send. The body stays the text that came: parsed, 200,000 of them would cost five times the memory. */
export interface Send {
  id: string
  at: number
  phoneNumberId: string
  type: string
  body: string
}

export interface Receipt {
  at: number
  phoneNumberId: string
  body: string
}

const keptSends = 200_000
const keptReceipts = 20_000

export type History = ReturnType<typeof createHistory>

/** What went through, newest kept: accepted sends, read receipts, and the ids of inbound messages. */
export function createHistory() {
  const sends = createBoundedMap<Send>(keptSends)
  const receipts = createBoundedMap<Receipt>(keptReceipts)
  const received = createBoundedMap<{ phoneNumberId: string; type: string; from: string }>(keptSends)
  let receiptCount = 0

  return {
    addSend: (send: Send) => sends.set(send.id, send),
    addReceipt: (receipt: Receipt) => receipts.set(`${receiptCount++}`, receipt),
    addReceived: (id: string, about: { phoneNumberId: string; type: string; from: string }) => received.set(id, about),
    send: (id: string) => sends.get(id),
    writerOf: (id: string, phoneNumberId: string) => {
      const message = received.get(id)
      return message?.phoneNumberId === phoneNumberId ? message.from : undefined
    },
    sends: () => [...sends.values()],
    receipts: () => [...receipts.values()],
    /** A message that this number got. One of before a restart is believed for its id. */
    wasReceived: (id: string, phoneNumberId: string) =>
      received.has(id) ? received.get(id)?.phoneNumberId === phoneNumberId : directionOf(id) === 'inbound',
    /** A message, of either direction, that is itself no reaction. */
    canBeReactedTo: (id: string) => {
      const type = (sends.get(id) ?? received.get(id))?.type
      return type === undefined ? directionOf(id) !== undefined : type !== 'reaction'
    },
  }
}
