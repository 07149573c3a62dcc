import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

test('what listens on this machine is reached where Node is told of a proxy', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-'))
  const server = createServer((_request, response) => response.end('here'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    rmSync(folder, { recursive: true })
  })
  const program = join(folder, 'ask.ts')
  writeFileSync(program, 'console.log(await (await fetch(process.argv[2])).text(), process.env.NO_PROXY)')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  // Nobody listens there.
  const proxy = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:1', NO_PROXY: 'internal.example' }
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'run.mjs'), program, url], {
    env: { PATH: process.env['PATH'], ...proxy },
  })
  expect(stdout).toBe('here internal.example,127.0.0.1,localhost\n')
})
