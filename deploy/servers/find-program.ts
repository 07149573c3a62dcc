import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { runProgram } from '../processes/run-program.ts'

// Where servers are put, and which the PATH of an ordinary user often lacks.
const usualFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/opt/homebrew/bin']

/** All programs of one of these names: those on the PATH first, then those in the given and the usual folders. */
export function findPrograms(names: string[], folders: string[] = []): string[] {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  const candidates = [...path, ...folders, ...usualFolders].flatMap((folder) => names.map((name) => join(folder, name)))
  return [...new Set(candidates.filter(isExecutable))]
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const versions = new Map<string, string>()

/** The version that a program states, such as `15.18`; `0` when it states none. It is asked once. */
export function versionOf(program: string): string {
  const known = versions.get(program)
  if (known !== undefined) return known
  const { stdout } = runProgram(program, ['--version'])
  const version = /\d+(\.\d+)+/.exec(stdout ?? '')?.[0] ?? '0'
  versions.set(program, version)
  return version
}

export const majorOf = (version: string): number => Number(version.split('.')[0])
