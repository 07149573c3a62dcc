type Write = (line: object, message: string) => void

/**
 * Writes so many lines a second; the next one says how many were left out. For what strangers bring about: they would write the log as
 * fast as they can ask. One who asked for files on 1,500 connections for 5 s made 100 MB of it.
 */
export function sparingly(most: number, write: Write): Write {
  let second = 0
  let written = 0
  let untold = 0
  return (line, message) => {
    const now = Math.floor(performance.now() / 1_000)
    if (now !== second) [second, written] = [now, 0]
    if (written >= most) return void untold++
    written++
    write(untold === 0 ? line : { ...line, untold }, message)
    untold = 0
  }
}

/** Lines a second, of each kind. */
export const mostLines = 10
