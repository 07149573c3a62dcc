import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { claimFolder, releaseFolder } from './claim.ts'
import { recordProcess } from './records.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'claim-'))
})
afterEach(() => rmSync(dataDir, { recursive: true }))

test('refuses a data folder that another process uses, until that one is gone', async () => {
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  recordProcess(dataDir, 'owner', other.pid ?? 0, 'SIGTERM')
  expect(() => claimFolder(dataDir)).toThrow(`${dataDir} is in use by process ${other.pid}`)
  other.kill('SIGKILL')
  await once(other, 'exit')
  claimFolder(dataDir)
  releaseFolder(dataDir)
})

test('lets a process claim its own folder again', () => {
  claimFolder(dataDir)
  claimFolder(dataDir)
  releaseFolder(dataDir)
})
