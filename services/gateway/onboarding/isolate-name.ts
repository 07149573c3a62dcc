/** What is written from right to left, such as Hebrew and Arabic. */
const rightToLeft = /[\u0590-\u08FF\u200F\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u
/** Signs that turn all that follows. */
const turning = /[\u202A-\u202E\u2066-\u2069]/g

/** A name that stays together in a sentence of ours, and does not reach into it, whichever way it is written. */
export function isolated(name: string): string {
  const plain = name.replaceAll(turning, '')
  return rightToLeft.test(plain) ? `\u2068${plain}\u2069` : plain
}
