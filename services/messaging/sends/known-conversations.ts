import type { Parties } from '@app/shared/contracts/directory.ts'
import { LRUCache } from 'lru-cache'
import type { z } from 'zod'

export interface KnownConversation {
  parties: z.output<typeof Parties>
  /** Until when free-form messages may be sent, in epoch milliseconds; 0: never written in. */
  windowUntilMs: number
}

/** A number of an organization. */
export interface OwnNumber {
  organizationId: string
  phoneNumberId: string
}

/** How long directory's word is taken without asking again: a contact deleted meanwhile is found gone by then. */
const trustMs = 10_000

/** Conversations that directory named a moment ago, so that a series of sends asks it once. Windows only ever grow. */
export interface KnownConversations {
  /** The conversation; with `open`, only while free-form messages may be sent. */
  find: (number: OwnNumber, recipient: string, window: 'open' | 'any') => KnownConversation | undefined
  remember: (number: OwnNumber, recipient: string, known: KnownConversation) => void
}

export function createKnownConversations(): KnownConversations {
  const cache = new LRUCache<string, KnownConversation>({ max: 50_000, ttl: trustMs })
  return {
    find(number, recipient, window) {
      const known = cache.get(keyOf(number, recipient))
      return known && (window === 'any' || known.windowUntilMs > Date.now()) ? known : undefined
    },
    remember: (number, recipient, known) => void cache.set(keyOf(number, recipient), known),
  }
}

const keyOf = ({ organizationId, phoneNumberId }: OwnNumber, recipient: string) =>
  `${organizationId} ${phoneNumberId} ${recipient}`
