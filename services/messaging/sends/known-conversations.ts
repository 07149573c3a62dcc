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

/** How long directory's word is taken without asking again, should what directory tells of a change be lost. */
const trustMs = 10_000

/**
 * How long nothing is taken without asking of what has changed: also an answer from before the change, that came after it,
 * has had its time by then.
 */
const doubtMs = 2 * trustMs

/** Conversations that directory named a moment ago, so that a series of sends asks it once. The window of one that stands only grows. */
export interface KnownConversations {
  /** The conversation; with `open`, only while free-form messages may be sent. */
  find: (number: OwnNumber, recipient: string, window: 'open' | 'any') => KnownConversation | undefined
  remember: (number: OwnNumber, recipient: string, known: KnownConversation) => void
  /** These contacts and conversations are not what they were. */
  doubt: (ids: string[]) => void
}

export function createKnownConversations(): KnownConversations {
  const cache = new LRUCache<string, KnownConversation>({ max: 50_000, ttl: trustMs })
  const doubted = new LRUCache<string, true>({ max: 50_000, ttl: doubtMs })
  const isTrusted = ({ parties: { contact, conversation } }: KnownConversation) =>
    !doubted.has(contact.id) && !doubted.has(conversation.id)
  return {
    find(number, recipient, window) {
      const known = cache.get(keyOf(number, recipient))
      const isFit = known && (window === 'any' || known.windowUntilMs > Date.now())
      return isFit && isTrusted(known) ? known : undefined
    },
    remember: (number, recipient, known) => void cache.set(keyOf(number, recipient), known),
    doubt(ids) {
      for (const id of ids) doubted.set(id, true)
    },
  }
}

const keyOf = ({ organizationId, phoneNumberId }: OwnNumber, recipient: string) =>
  `${organizationId} ${phoneNumberId} ${recipient}`
