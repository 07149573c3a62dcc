import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keepPort, portFor, refusalOf } from './ports.ts'

test('a port that is taken is told from one that may not be taken', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  expect(await refusalOf((server.address() as AddressInfo).port)).toBe('EADDRINUSE')
})

test('a name keeps its port until that one is taken, or kept for something else', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'ports-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true }))
  const [first, other] = [await portFor(dataDir, 'first'), await portFor(dataDir, 'other')]
  expect([await portFor(dataDir, 'first'), await portFor(dataDir, 'other')]).toEqual([first, other])
  keepPort(first)
  expect(await portFor(dataDir, 'first')).not.toBe(first)
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(other, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  expect(await portFor(dataDir, 'other')).not.toBe(other)
})

const nobody = { uid: 65_534 }
const code = `import { refusalOf } from ${JSON.stringify(new URL('ports.ts', import.meta.url).href)}; console.log(await refusalOf(80))`
const asked = spawnSync(process.execPath, ['--input-type=module', '-e', code], { ...nobody, encoding: 'utf8' })

// Only root may ask as somebody else, who must be able to read this folder; and some machines give all ports to all.
test.runIf(asked.status === 0 && asked.stdout !== 'undefined\n')(
  'a port of the first thousand is not called taken',
  () => {
    expect(asked.stdout).toBe('EACCES\n')
  },
)
