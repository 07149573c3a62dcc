import { chmodSync, globSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isClaim } from '@app/deploy/processes/claim.ts'
import { findRecorded, recordedNames, stopRecorded } from '@app/deploy/processes/records.ts'

const prefix = join(tmpdir(), 'messaging-service-test-')
/** A run that has just begun has not claimed its folders yet. */
const youngMs = 60_000

/** A folder for one run of the tests, with one folder in it for each set of servers. */
export async function makeRunFolder(): Promise<string> {
  for (const folder of globSync(`${prefix}*`)) if (isAbandoned(folder)) await removeRunFolder(folder)
  const folder = mkdtempSync(prefix)
  // So that the user whom Postgres runs as may enter it.
  chmodSync(folder, 0o711)
  return folder
}

/** Stops what still runs for it: a process of the tests that is killed leaves its servers behind. */
export async function removeRunFolder(folder: string): Promise<void> {
  for (const dataDir of dataDirsOf(folder)) {
    for (const name of recordedNames(dataDir)) if (!isClaim(name)) await stopRecorded(dataDir, name, 2_000)
  }
  rmSync(folder, { recursive: true, force: true })
}

/** Whether nobody who works in it is alive: the run was killed. */
function isAbandoned(folder: string) {
  const isOwned = (dataDir: string) =>
    recordedNames(dataDir).some((name) => isClaim(name) && findRecorded(dataDir, name) !== undefined)
  return Date.now() - statSync(folder).mtimeMs > youngMs && !dataDirsOf(folder).some(isOwned)
}

const dataDirsOf = (folder: string) => readdirSync(folder).map((name) => join(folder, name))
