/** A call that takes longer than this waits for its endpoint, and needs nothing of ours but its connection and what it sends. */
const longMs = 1_000
/** Long calls that need no slot. A connection with TLS takes some 100 KB. */
const most = 2_000
/** Of what those send. */
const mostBytes = 64 * 1024 * 1024

export interface LongCalls {
  /** A call with a body of so many bytes begins; the answer is to be called when it ends. */
  begin: (bytes: number) => () => void
  /** How many calls under way need no slot: those that take long, up to a number of them, and of their bytes. */
  count: () => number
}

interface Call {
  at: number
  bytes: number
}

/**
 * Hundreds of endpoints may hang from one moment to the next, where they are in the same place. Ended by their time-outs alone, their
 * calls would fill the slots of all for as long. `now` is monotonic, in ms.
 */
export function createLongCalls(now: () => number = () => performance.now()): LongCalls {
  /** Oldest first. */
  const short = new Set<Call>()
  const long = new Set<Call>()
  let longBytes = 0

  function sort() {
    const limit = now() - longMs
    for (const call of short) {
      if (call.at > limit || long.size === most || longBytes + call.bytes > mostBytes) return
      short.delete(call)
      long.add(call)
      longBytes += call.bytes
    }
  }

  return {
    begin(bytes) {
      const call = { at: now(), bytes }
      short.add(call)
      return () => {
        if (long.delete(call)) longBytes -= call.bytes
        else short.delete(call)
      }
    },
    count() {
      sort()
      return long.size
    },
  }
}
