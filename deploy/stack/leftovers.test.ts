import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findRecorded, recordProcess } from '../processes/records.ts'
import { stopLeftovers } from './leftovers.ts'

/** Notes its name when it is asked to end. */
const program = 'trap "echo $0 >> ended; exit" TERM; echo up; while :; do sleep 0.05; done'

test('what an earlier stack left running is ended, its servers last, but not who has the folder now', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'leftovers-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  for (const name of ['owner', 'postgres', 'gateway']) {
    const child = spawn('sh', ['-c', program, name], { cwd: dataDir })
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    recordProcess(dataDir, name, child.pid ?? 0, 'SIGTERM')
  }
  await stopLeftovers(dataDir)
  expect(readFileSync(join(dataDir, 'ended'), 'utf8')).toBe('gateway\npostgres\n')
  expect(findRecorded(dataDir, 'owner')).toBeDefined()
})
