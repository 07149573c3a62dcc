import { mkdirSync } from 'node:fs'
import { findRecorded, forgetProcess, recordAlone } from './records.ts'

const owner = 'owner'

/** Makes the data folder this process's own, so that no two run their servers on the same data. */
export function claimFolder(dataDir: string): void {
  mkdirSync(dataDir, { recursive: true })
  const pid = recordAlone(dataDir, owner, 'SIGTERM')
  if (pid === undefined || pid === process.pid) return
  throw new Error(`${dataDir} is in use by process ${pid}. Stop that one, or set SVC_DATA_DIR to another folder.`)
}

export function releaseFolder(dataDir: string): void {
  if (findRecorded(dataDir, owner) === process.pid) forgetProcess(dataDir, owner)
}

/** Whether the record of that name is the claim itself. */
export const isClaim = (name: string): boolean => name === owner
