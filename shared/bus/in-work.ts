interface Held {
  count: number
  bytes: number
}

/** Questions in work at a time, and bytes of their bodies. */
const most: Held = { count: 4_096, bytes: 256 * 1024 * 1024 }

/** What a process works on, by whose it is; '' is nobody's in particular. */
export interface InWork {
  /** Null when there is too much; else what is to be called at its end. */
  begin: (owner: string, bytes: number) => (() => void) | null
}

/**
 * An organization has no more in work than is left for others: several gateways may each ask as much for it as they bear, and
 * together they would fill a service that others need.
 */
export function createInWork(): InWork {
  const all: Held = { count: 0, bytes: 0 }
  const owned = new Map<string, Held>()
  return {
    begin(owner, bytes) {
      const own = owned.get(owner) ?? { count: 0, bytes: 0 }
      if (!hasRoom(owner === '' ? none : own, all, bytes)) return null
      owned.set(owner, own)
      change(1, bytes)
      return () => {
        change(-1, -bytes)
        if (own.count === 0) owned.delete(owner)
      }
      function change(count: number, by: number) {
        for (const held of [all, own]) {
          held.count += count
          held.bytes += by
        }
      }
    },
  }
}

const none: Held = { count: 0, bytes: 0 }

const hasRoom = (own: Held, all: Held, bytes: number) =>
  own.count < most.count - all.count && own.bytes + bytes <= most.bytes - all.bytes
