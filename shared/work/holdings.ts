/** Works under way, and bytes of their bodies. */
export interface Held {
  count: number
  bytes: number
}

/** What a process bears at a time: a gateway of requests, a service of questions. */
export const mostHeld: Held = { count: 4_096, bytes: 256 * 1024 * 1024 }

export interface Holdings {
  all: Held
  of: (owner: string) => Readonly<Held>
  /** What is negative is given back. */
  add: (owner: string, count: number, bytes: number) => void
}

/** Counts what a process holds at the moment, of all and of each owner. */
export function createHoldings(): Holdings {
  const all: Held = { count: 0, bytes: 0 }
  const owned = new Map<string, Held>()
  return {
    all,
    of: (owner) => owned.get(owner) ?? none,
    add(owner, count, bytes) {
      const own = owned.get(owner) ?? { count: 0, bytes: 0 }
      for (const held of [all, own]) {
        held.count += count
        held.bytes += bytes
      }
      if (own.count === 0 && own.bytes === 0) owned.delete(owner)
      else owned.set(owner, own)
    },
  }
}

const none: Readonly<Held> = { count: 0, bytes: 0 }
