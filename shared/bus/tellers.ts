/** How often each teller is heard at least, in ms. */
export const beatMs = 2_000

/** A teller that is silent for longer may have told something that did not arrive. */
const silentMs = 3 * beatMs

/** A teller that is silent for this long without having said that it ends is gone, and nobody asks it any more. */
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
   * Since when (performance.now) everything that was told has been heard: what was read from the tellers after that, and of which no
   * change was told, is still true. Infinity while nobody tells.
   */
  wholeSince: () => number
}

/**
 * Keeps count of tellers. Something may have been missed when there is a gap in a teller's numbers, when it was not heard from its
 * first word on, and when it is silent; also in the first seconds, while not all tellers are known.
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
