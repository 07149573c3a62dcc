import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { portFor } from '../processes/ports.ts'
import { onTestFinished, test, vi } from 'vitest'

const alone = ['--pid', '--fork', '--kill-child']
const canBeFirst = spawnSync('unshare', [...alone, 'true']).status === 0

const answers = (url: string) =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  )

// In a container it is the first process, and that ignores a signal that it does not handle.
test.runIf(canBeFirst)('a service that waits for its servers ends when it is told to, in a container too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'service-'))
  const port = await portFor(folder, 'probe')
  const main = fileURLToPath(new URL('../../services/directory/main.ts', import.meta.url))
  const env = {
    PATH: process.env['PATH'],
    PROBE_PORT: String(port),
    NATS_URL: 'nats://127.0.0.1:1',
    DATABASE_URL: 'postgres://127.0.0.1:1/x',
    CURSOR_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
  }
  const container = spawn('unshare', [...alone, process.execPath, main], { env, stdio: 'ignore' })
  const ended = once(container, 'exit')
  onTestFinished(() => {
    container.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  })
  await vi.waitUntil(() => answers(`http://127.0.0.1:${port}/livez`), 15_000)
  const [first] = readFileSync(`/proc/${container.pid}/task/${container.pid}/children`, 'utf8').split(' ')
  process.kill(Number(first), 'SIGTERM')
  await ended
})
