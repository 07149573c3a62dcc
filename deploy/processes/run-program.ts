import { spawnSync, type SpawnSyncOptions } from 'node:child_process'

/**
 * Runs a program to its end. Throws when a signal ended it, as a Ctrl-C ends everything in the terminal: then its
 * silence must not be read as an answer.
 */
export function runProgram(command: string, args: string[], options: SpawnSyncOptions = {}) {
  const result = spawnSync(command, args, { maxBuffer: 64 * 1024 * 1024, ...options, encoding: 'utf8' })
  if (result.signal) throw new Error(`${command} was ended by ${result.signal}.`)
  return result
}
