import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startTrial } from './trial.ts'

async function temporaryFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'simulator-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

const text = { type: 'text', text: { body: 'hi' } }

test('keeps numbers, tokens and windows over a restart', async () => {
  const folder = await temporaryFolder()
  const dataFile = join(folder, 'state', 'simulator.json')
  const before = await startTrial({ dataFile })
  const inbound = await before.receive(before.number)
  await before.stop()

  const after = await startTrial({ dataFile })
  const again = await after.addNumber({ phone_number_id: before.number.phone_number_id })
  expect(again).toEqual(before.number)
  expect(await after.send(before.number, text)).toMatchObject({ status: 200 })
  expect(await after.send(before.number, { status: 'read', message_id: inbound })).toMatchObject({ status: 200 })
  expect(await readdir(join(folder, 'state'))).toEqual(['simulator.json'])
  expect((await stat(dataFile)).mode & 0o777).toBe(0o600)
})

test('has a number on the disk before it answers', async () => {
  const dataFile = join(await temporaryFolder(), 'simulator.json')
  const { number } = await startTrial({ dataFile })
  const other = await startTrial({ dataFile })
  expect(await other.send(number, { text: { body: '' } })).toMatchObject({
    status: 400,
    body: { error: { code: 100 } },
  })
})

test('does not start on a data file that it cannot read', async () => {
  const dataFile = join(await temporaryFolder(), 'simulator.json')
  await writeFile(dataFile, '{"numbers":')
  await expect(startTrial({ dataFile })).rejects.toThrow('is not a data file of the simulator')
})

test('runs as a process: says where it is, answers, and ends on either signal', async () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
      env: {
        UPSTREAM_APP_ID: '1000',
        UPSTREAM_APP_SECRET: 'secret',
        UPSTREAM_VERIFY_TOKEN: 'verify-me',
        CALLBACK_URL: 'http://127.0.0.1:9/upstream/callbacks',
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [line] = await once(child.stdout, 'data')
    const { url } = JSON.parse(`${line}`)
    const health = await fetch(`${url}/healthz`)
    expect(await health.json()).toEqual({ status: 'ok' })
    child.kill(signal)
    expect(await once(child, 'exit')).toEqual([0, null])
  }
})

test('does not start without its environment, and says what is missing', async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], { env: {} })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [complaint] = await once(child.stderr, 'data')
  expect(`${complaint}`).toContain('UPSTREAM_APP_SECRET')
  expect(await once(child, 'exit')).toEqual([1, null])
})
