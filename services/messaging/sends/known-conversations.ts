import type { Tellers } from '@app/shared/bus/tellers.ts'
import type { Parties } from '@app/shared/contracts/directory.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'
import type { LRUCache } from 'lru-cache'
import type { z } from 'zod'
import type { OwnNumber } from '../senders/own-number.ts'

export interface KnownConversation {
  parties: z.output<typeof Parties>
  /** Until when free-form messages may be sent, in epoch milliseconds; 0: never written in. */
  windowUntilMs: number
}

/** How long directory's word is taken while all that it tells of changes is heard. */
const trustMs = 10 * 60_000

/** And while something of it may have been missed. */
const blindTrustMs = 10_000

/** So much later than it is told of, a change may be committed: whoever made it may have lost the connection to Postgres. */
const lateMs = 20_000

const most = 50_000

/** Conversations that directory has named, so that a series of sends asks it once. */
export interface KnownConversations {
  /** The conversation; with `open`, only while free-form messages may be sent. */
  find: (number: OwnNumber, recipient: string, window: 'open' | 'any') => KnownConversation | undefined
  /** What directory answered when it was asked at `askedAt` (performance.now). */
  remember: (number: OwnNumber, recipient: string, known: KnownConversation, askedAt: number) => void
  /** The contact has written: what directory said then, which may be a while ago, and is told again. */
  noteInbound: (number: OwnNumber, recipient: string, known: KnownConversation) => void
  /** These contacts and conversations are not what they were. */
  doubt: (ids: string[]) => void
}

interface Remembered extends KnownConversation {
  askedAt: number
  at: number
}

/** `wholeSince`: of those who tell what changes. */
export function createKnownConversations({ wholeSince }: Pick<Tellers, 'wholeSince'>): KnownConversations {
  const remembered = mostRecent<string, Remembered>(most)
  /** By the id of what changed: only answers asked for after this time count. `forgottenUntil` is the latest time that was evicted. */
  const doubted = mostRecent<string, number>(most, { dispose: forget })
  let forgottenUntil = -Infinity
  function forget(until: number, _id: string, why: LRUCache.DisposeReason) {
    if (why === 'evict') forgottenUntil = Math.max(forgottenUntil, until)
  }

  function isTrusted({ parties, askedAt, at }: Remembered) {
    const isWhole = askedAt > Math.max(wholeSince(), forgottenUntil)
    if (performance.now() - at > (isWhole ? trustMs : blindTrustMs)) return false
    return [parties.contact.id, parties.conversation.id].every((id) => askedAt >= (doubted.peek(id) ?? -Infinity))
  }
  const keep = (key: string, { parties, windowUntilMs }: KnownConversation, askedAt: number) =>
    void remembered.set(key, { parties, windowUntilMs, askedAt, at: performance.now() })
  return {
    find(number, recipient, window) {
      const found = remembered.get(keyOf(number, recipient))
      const isFit = found && (window === 'any' || found.windowUntilMs > Date.now())
      return isFit && isTrusted(found) ? found : undefined
    },
    remember: (number, recipient, known, askedAt) => keep(keyOf(number, recipient), known, askedAt),
    noteInbound(number, recipient, known) {
      const key = keyOf(number, recipient)
      const found = remembered.get(key)
      // Its window only grows.
      if (found && isSame(found, known) && isTrusted(found))
        found.windowUntilMs = Math.max(found.windowUntilMs, known.windowUntilMs)
      else keep(key, known, -Infinity)
    },
    doubt(ids) {
      const until = performance.now() + lateMs
      for (const id of ids) doubted.set(id, until)
    },
  }
}

const isSame = ({ parties: one }: KnownConversation, { parties: other }: KnownConversation) =>
  one.conversation.id === other.conversation.id && one.contact.id === other.contact.id

const keyOf = ({ organizationId, phoneNumberId }: OwnNumber, recipient: string) =>
  `${organizationId} ${phoneNumberId} ${recipient}`
