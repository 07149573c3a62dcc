import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { identityOf } from './identity.ts'

// What runs for a data folder is noted in its folder `run`, one file a process, so that a start after a kill -9 finds
// what was left behind.
const record = z.object({ pid: z.int().positive(), identity: z.string(), stopSignal: z.enum(['SIGTERM', 'SIGINT']) })
export type StopSignal = z.infer<typeof record>['stopSignal']

const folderOf = (dataDir: string) => join(dataDir, 'run')
const fileOf = (dataDir: string, name: string) => join(folderOf(dataDir), `${name}.json`)

export function recordProcess(dataDir: string, name: string, pid: number, stopSignal: StopSignal): void {
  const identity = identityOf(pid)
  if (identity === undefined) return
  mkdirSync(folderOf(dataDir), { recursive: true })
  const file = fileOf(dataDir, name)
  writeFileSync(`${file}.new`, JSON.stringify({ pid, identity, stopSignal }))
  renameSync(`${file}.new`, file)
}

/** Records this process, unless another one that runs has the name: then it answers that one's id. Of two at once, one succeeds. */
export function recordAlone(dataDir: string, name: string, stopSignal: StopSignal): number | undefined {
  const file = fileOf(dataDir, name)
  const own = `${file}.${process.pid}.new`
  mkdirSync(folderOf(dataDir), { recursive: true })
  writeFileSync(own, JSON.stringify({ pid: process.pid, identity: identityOf(process.pid), stopSignal }))
  try {
    for (;;) {
      // A link, unlike a renamed file, takes the place of none.
      if (link(own, file)) return undefined
      const found = findRecorded(dataDir, name) ?? setAside(dataDir, name)
      if (found !== undefined) return found
    }
  } finally {
    rmSync(own, { force: true })
  }
}

/** Takes away the record of a process that is gone. Another start may have done so just now: its record is put back, and is the answer. */
function setAside(dataDir: string, name: string) {
  const aside = `${name}.${process.pid}.dead`
  try {
    renameSync(fileOf(dataDir, name), fileOf(dataDir, aside))
  } catch {
    return undefined
  }
  const found = findRecorded(dataDir, aside)
  if (found !== undefined) link(fileOf(dataDir, aside), fileOf(dataDir, name))
  forgetProcess(dataDir, aside)
  return found
}

function link(from: string, to: string) {
  try {
    linkSync(from, to)
    return true
  } catch (err) {
    if (err instanceof Error && 'code' in err && err.code === 'EEXIST') return false
    throw err
  }
}

export function forgetProcess(dataDir: string, name: string): void {
  rmSync(fileOf(dataDir, name), { force: true })
}

/** The id of the recorded process, if it still runs. */
export function findRecorded(dataDir: string, name: string): number | undefined {
  return aliveRecord(dataDir, name)?.pid
}

/** Names of all recorded processes, running or not. */
export function recordedNames(dataDir: string): string[] {
  try {
    const files = readdirSync(folderOf(dataDir)).filter((file) => file.endsWith('.json'))
    return files.map((file) => file.slice(0, -'.json'.length))
  } catch {
    return []
  }
}

/** Ends a process that an earlier start left behind, first by asking, after `graceMs` by force. */
export async function stopRecorded(dataDir: string, name: string, graceMs: number): Promise<void> {
  const found = aliveRecord(dataDir, name)
  if (found) {
    signal(found.pid, found.stopSignal)
    const isGone = () => identityOf(found.pid) !== found.identity
    if (!(await until(isGone, graceMs))) {
      signal(found.pid, 'SIGKILL')
      await until(isGone, 5_000)
    }
  }
  forgetProcess(dataDir, name)
}

function aliveRecord(dataDir: string, name: string) {
  try {
    const found = record.parse(JSON.parse(readFileSync(fileOf(dataDir, name), 'utf8')))
    return identityOf(found.pid) === found.identity ? found : undefined
  } catch {
    return undefined
  }
}

function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name)
  } catch {
    // It ended by itself in between.
  }
}

async function until(isTrue: () => boolean, timeoutMs: number) {
  const endsAt = performance.now() + timeoutMs
  while (!isTrue()) {
    if (performance.now() > endsAt) return false
    await sleep(20)
  }
  return true
}
