import { copyFileSync, mkdirSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'

const rotateAtBytes = 20 * 1024 * 1024
const lookEveryMs = 10_000
const shownLines = 30

export const logFileOf = (dataDir: string, name: string): string => join(dataDir, 'logs', `${name}.log`)

export const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Opens a log to append to. */
export function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true })
  return openSync(file, 'a')
}

/**
 * From now on the log that has grown large becomes `<name>.log.1`, in place of the one before it, until what it answers is called.
 * It is copied and emptied, since the program goes on writing to the file that it was given; a line of that very moment is lost.
 */
export function keepSmall(file: string): () => void {
  const timer = setInterval(() => rotate(file), lookEveryMs).unref()
  return () => clearInterval(timer)
}

function rotate(file: string) {
  try {
    if (statSync(file).size <= rotateAtBytes) return
    copyFileSync(file, `${file}.1`)
    truncateSync(file)
  } catch {
    // The disk is full, perhaps, and later it is not.
  }
}

/** The last lines of a log behind that byte, for a person who wants to know why something did not start. */
export function lastLines(file: string, from: number): string {
  try {
    // One that was emptied since is read from its beginning.
    const bytes = readFileSync(file)
    return bytes
      .subarray(from > bytes.length ? 0 : from)
      .toString()
      .trimEnd()
      .split('\n')
      .slice(-shownLines)
      .join('\n')
  } catch {
    return ''
  }
}
