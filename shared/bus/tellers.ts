/** How often each teller is heard at least, in ms. */
export const beatMs = 2_000

/** Who is silent for longer may have told what did not arrive. */
const silentMs = 3 * beatMs

/** Who is silent for so long, and has not said that it ends, is gone, and nobody asks it any more. */
const goneMs = 10 * 60_000

export interface Told {
  /** The instance that tells. */
  teller: string
  /** 1 for the first that it tells, and one more for each. */
  number: number
  /** It tells nothing after this. */
  isLast: boolean
}

/** All who tell something, and whether anything of it was missed. */
export interface Tellers {
  heard: (told: Told) => void
  /** Something was told that could not be read. */
  missed: () => void
  /**
   * Since when (performance.now) everything that was told has been heard: what was read elsewhere after that, and is not told
   * of, is as it was. Infinity while nobody tells.
   */
  wholeSince: () => number
}

/**
 * Keeps count of tellers. A gap in the numbers of one, one that was not heard from its first word on, and one that is silent
 * each break the whole. The first seconds count as silence: until then not all are known.
 */
export function createTellers(): Tellers {
  const tellers = new Map<string, { number: number; heardAt: number }>()
  let since = performance.now() + silentMs
  const missed = () => {
    since = Math.max(since, performance.now())
  }
  return {
    missed,
    heard({ teller, number, isLast }) {
      if (number !== (tellers.get(teller)?.number ?? 0) + 1) missed()
      if (isLast) tellers.delete(teller)
      else tellers.set(teller, { number, heardAt: performance.now() })
    },
    wholeSince() {
      for (const [teller, { heardAt }] of tellers) {
        const silence = performance.now() - heardAt
        if (silence > silentMs) missed()
        if (silence > goneMs) tellers.delete(teller)
      }
      return tellers.size === 0 ? Infinity : since
    },
  }
}
