import type { Parties } from '@app/shared/contracts/directory.ts'
import { LRUCache } from 'lru-cache'
import type { z } from 'zod'

export interface KnownConversation {
  parties: z.output<typeof Parties>
  /** Until when free-form messages may be sent, in epoch milliseconds; 0: never written in. */
  windowUntilMs: number
}

/** How long directory's word is taken without asking again: a contact deleted meanwhile is found gone by then. */
const trustMs = 10_000

/** Conversations that directory named a moment ago, so that a series of sends asks it once. Windows only ever grow. */
export interface KnownConversations {
  /** The conversation, if its window is open now. */
  findOpen: (phoneNumberId: string, recipient: string) => KnownConversation | undefined
  remember: (phoneNumberId: string, recipient: string, known: KnownConversation) => void
}

export function createKnownConversations(): KnownConversations {
  const cache = new LRUCache<string, KnownConversation>({ max: 50_000, ttl: trustMs })
  return {
    findOpen(phoneNumberId, recipient) {
      const known = cache.get(`${phoneNumberId} ${recipient}`)
      return known && known.windowUntilMs > Date.now() ? known : undefined
    },
    remember: (phoneNumberId, recipient, known) => void cache.set(`${phoneNumberId} ${recipient}`, known),
  }
}
