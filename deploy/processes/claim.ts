import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { sentenceOf } from '../command.ts'
import { findRecorded, forgetProcess, recordAlone } from './records.ts'

const owner = 'owner'

/** Makes the data folder this process's own, so that no two run their servers on the same data. False when it was before. */
export function claimFolder(dataDir: string): boolean {
  const pid = claim(dataDir)
  if (pid === undefined || pid === process.pid) return pid === undefined
  throw new Error(`${dataDir} is in use by process ${pid}. Stop that one, or set SVC_DATA_DIR to another folder.`)
}

function claim(dataDir: string) {
  try {
    makeFolder(dataDir)
    return recordAlone(dataDir, owner, 'SIGTERM')
  } catch (err) {
    throw new Error(`${dataDir} cannot be the data folder (${sentenceOf(err)}). Set SVC_DATA_DIR to another one.`, {
      cause: err,
    })
  }
}

/** Not by `recursive`, which in Node 24 never ends in /proc, or at a link to nothing. */
function makeFolder(folder: string) {
  if (existsSync(folder)) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder)
  } catch (err) {
    // Another start may have made it just now; a link to nothing is no folder.
    if (!existsSync(folder)) throw err
  }
}

export function releaseFolder(dataDir: string): void {
  if (findRecorded(dataDir, owner) === process.pid) forgetProcess(dataDir, owner)
}

/** Whether the record of that name is the claim itself. */
export const isClaim = (name: string): boolean => name === owner
