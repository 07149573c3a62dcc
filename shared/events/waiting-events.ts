import type { JsMsg } from 'nats'

/** Events that were given to a consumer, until it has handled them. */
export function createWaitingEvents() {
  /** By their place in the stream: what was given twice waits once. */
  const waiting = new Map<number, JsMsg>()
  let batch: JsMsg[] = []
  let keepingAlive: NodeJS.Timeout | undefined

  function takeFirst(most: number): JsMsg[] {
    const first = [...waiting.values().take(most)]
    for (const { seq } of first) waiting.delete(seq)
    return first
  }

  return {
    add: (message: JsMsg) => void waiting.set(message.seq, message),
    count: () => waiting.size,
    /** The first of them, until `handle` returns. */
    async handleNext(most: number, handle: (messages: JsMsg[]) => Promise<void>) {
      batch = takeFirst(most)
      await handle(batch)
      batch = []
    },
    /**
     * The client takes in as many as may be unacked, 4,096, whatever becomes of those before. Without a word they would come
     * again after each time for an ack, and an hour without a database would fill the memory with them.
     */
    keepAlive(ackWaitMs: number) {
      clearInterval(keepingAlive)
      keepingAlive = setInterval(() => {
        for (const message of [...batch, ...waiting.values()]) message.working()
      }, ackWaitMs / 3)
    },
    giveBack() {
      clearInterval(keepingAlive)
      giveBack([...waiting.values()])
    },
  }
}

/** Another instance gets them at once, and not when the time for an ack is over. */
export const giveBack = (messages: JsMsg[]): void => messages.forEach((message) => message.nak())
