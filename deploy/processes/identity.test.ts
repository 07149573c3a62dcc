import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test, vi } from 'vitest'
import { identityOf } from './identity.ts'

test.runIf(process.platform === 'linux')('a process that has ended is gone, also while nobody asks how', async () => {
  // As in a container whose first process looks after no others.
  const careless = spawn('/bin/sh', ['-c', 'sleep 60 & echo $!; exec sleep 61'])
  onTestFinished(() => void careless.kill())
  const [said] = await once(careless.stdout, 'data')
  await vi.waitUntil(() => readFileSync(`/proc/${careless.pid}/cmdline`, 'utf8').startsWith('sleep'), 5_000)
  process.kill(Number(said), 'SIGKILL')
  await vi.waitUntil(() => readFileSync(`/proc/${Number(said)}/stat`, 'utf8').includes(') Z '), 5_000)
  expect(identityOf(Number(said))).toBeUndefined()
})
