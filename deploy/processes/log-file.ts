import { mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

const rotateAtBytes = 20 * 1024 * 1024

export const logFileOf = (dataDir: string, name: string): string => join(dataDir, 'logs', `${name}.log`)

/** Opens a log to append to. One that has grown large becomes `<name>.log.1`, in place of the one before it. */
export function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true })
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  if (size > rotateAtBytes) renameSync(file, `${file}.1`)
  return openSync(file, 'a')
}

/** The last lines of a log, for a person who wants to know why something did not start. */
export function lastLines(file: string, count = 30): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count).join('\n')
  } catch {
    return ''
  }
}
