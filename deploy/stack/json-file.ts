import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { sentenceOf } from '../command.ts'

/** The content of a JSON file; undefined when there is none. */
export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (err) {
    if (err instanceof Error && 'code' in err && err.code === 'ENOENT') return undefined
    throw new Error(`${file} cannot be read: ${sentenceOf(err)}`, { cause: err })
  }
}

/** Writes the file whole, so that a reader sees the old or the new one, and for this user's eyes alone, since it holds secrets. */
export function writeJson(file: string, value: unknown): void {
  const unfinished = `${file}.${process.pid}.new`
  // On the disk before it takes the other's place: after a power cut some file systems have the new name with nothing in it.
  writeFileSync(unfinished, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flush: true })
  renameSync(unfinished, file)
}
