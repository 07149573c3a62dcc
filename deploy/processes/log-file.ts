import { copyFileSync, mkdirSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'

const rotateAtBytes = 20 * 1024 * 1024

export const logFileOf = (dataDir: string, name: string): string => join(dataDir, 'logs', `${name}.log`)

/** Opens a log to append to. */
export function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true })
  return openSync(file, 'a')
}

/**
 * A log that has grown large becomes `<name>.log.1`, in place of the one before it. It is copied and emptied, since a program
 * goes on writing to the file that it was given; a line of that very moment is lost.
 */
export function rotateLog(file: string): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (size <= rotateAtBytes) return
  copyFileSync(file, `${file}.1`)
  truncateSync(file)
}

/** The last lines of a log, for a person who wants to know why something did not start. */
export function lastLines(file: string, count = 30): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count).join('\n')
  } catch {
    return ''
  }
}
