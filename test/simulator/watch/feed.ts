import { createBoundedMap } from '../bounded-map.ts'
import type { Components } from '../templates/template.ts'

/** What somebody who looks on is shown; `person` is the other side of the number's chat. */
export type WatchEvent =
  | {
      type: 'send'
      id: string
      at: number
      number: string
      person: string
      body: string
      template?: Components | undefined
    }
  | { type: 'inbound'; id: string; at: number; number: string; person: string; message: object }
  | { type: 'status'; id: string; status: string; number: string; person: string }

type Listener = (place: number, event: WatchEvent) => void

/** Shown to who comes later. */
const kept = 1_000

export type Feed = ReturnType<typeof createFeed>

/** The newest events, and who is told of each as it happens. While nobody looks, an event costs one entry of a map. */
export function createFeed() {
  const newest = createBoundedMap<{ place: number; event: WatchEvent }>(kept)
  const listeners = new Set<Listener>()
  // So that a browser which saw a former simulator's events misses none of this one's.
  let place = Date.now() * 1_000

  return {
    add: (event: WatchEvent) => {
      place++
      newest.set(`${place}`, { place, event })
      for (const listener of listeners) listener(place, event)
    },
    /** Everything after a place that is still there, then what comes; answers how to stop. */
    follow: (after: number, listener: Listener) => {
      for (const known of newest.values()) if (known.place > after) listener(known.place, known.event)
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
