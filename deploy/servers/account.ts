import { statSync } from 'node:fs'
import { runProgram } from '../processes/run-program.ts'

export interface Account {
  uid: number
  gid: number
}

export const isRoot = (): boolean => process.getuid?.() === 0

/**
 * Whom Postgres runs as, since it refuses to run as root: the owner of its data, else the user `postgres`, else
 * `nobody`. Undefined for ourselves, when we are not root.
 */
export function postgresAccount(dataFolder: string): Account | undefined {
  if (!isRoot()) return undefined
  const owner = statSync(dataFolder, { throwIfNoEntry: false })
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  return accountOf('postgres') ?? accountOf('nobody') ?? { uid: 65_534, gid: 65_534 }
}

/** Whether that user may enter the folder, which hangs on every folder above it, too. */
export function canEnter(folder: string, account: Account | undefined): boolean {
  return runProgram('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { cwd: '/', ...account }).status === 0
}

function accountOf(name: string): Account | undefined {
  const [uid, gid] = ['-u', '-g'].map((flag) => runProgram('id', [flag, name]))
  if (uid?.status !== 0 || gid?.status !== 0) return undefined
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
}
