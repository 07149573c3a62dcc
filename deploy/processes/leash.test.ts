import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

test('a service ends in order when the process that started it is gone, and not before', async () => {
  const leash = join(import.meta.dirname, 'leash.ts')
  const service = fork('-e', ['process.send("up"); setInterval(() => {}, 1_000)'], { execArgv: ['--import', leash] })
  onTestFinished(() => void service.kill('SIGKILL'))
  const ended = once(service, 'exit')
  await once(service, 'message')
  expect(service.exitCode).toBeNull()
  // As the system does with the channel of a process that was killed.
  service.disconnect()
  expect(await ended).toEqual([null, 'SIGTERM'])
})
