import type { SettingsStore } from '../settings.ts'
import { wordsOf } from '../words.ts'
import { callbackBody, sizeOf, type Update } from './update.ts'

/** The bytes of one callback and how they have fared. */
export interface Post {
  bytes: Buffer
  updates: number
  attempts: number
  madeAt: number
  notBefore: number
}

/** The platform's own bounds of one POST: 1,000 updates, 3 MB; a character is a byte. */
const maxUpdates = 1_000
const maxCharacters = 2_900_000
/** About 300 MB of statuses: two minutes of a receiver's absence at 1,400 sends a second. */
const maxWaitingUpdates = 500_000
const maxWaitingPosts = 1_000

/** What is still to be told: updates that are not in a body yet, and bodies that wait for their time. */
export function createWaiting(settings: SettingsStore) {
  const updates: Update[] = []
  const posts: Post[] = []

  function takeDue(now: number) {
    const index = posts.findIndex(({ notBefore }) => notBefore <= now)
    return index < 0 ? undefined : posts.splice(index, 1)[0]
  }

  /** As many updates as one POST may hold, in their order. */
  function gather(now: number): Post | undefined {
    let count = 0
    let characters = 0
    for (const update of updates) {
      characters += sizeOf(update)
      if (count === maxUpdates || (count > 0 && characters > maxCharacters)) break
      count++
    }
    if (count === 0) return undefined
    const bytes = Buffer.from(callbackBody(updates.splice(0, count), wordsOf(settings.current)))
    return { bytes, updates: count, attempts: 0, madeAt: now, notBefore: 0 }
  }

  return {
    /** False when there is no room. */
    addUpdate: (update: Update) => updates.length < maxWaitingUpdates && updates.push(update) > 0,
    /** False when there is no room. */
    addBytes: (bytes: Buffer, now: number) =>
      posts.length < maxWaitingPosts && posts.push({ bytes, updates: 1, attempts: 0, madeAt: now, notBefore: 0 }) > 0,
    putBack: (post: Post) => void posts.push(post),
    take: (now: number) => takeDue(now) ?? gather(now),
    /** Bodies that were refused before. */
    refused: () => posts.filter(({ attempts }) => attempts > 0).length,
    /** When something may go: at once for updates; undefined when nothing waits. */
    nextAt: () => (updates.length > 0 ? 0 : posts.map(({ notBefore }) => notBefore).toSorted((a, b) => a - b)[0]),
    size: () => posts.reduce((sum, post) => sum + post.updates, updates.length),
  }
}
