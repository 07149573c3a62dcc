import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
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
  expect(readdirSync(join(dataDir, 'run'))).toEqual(['owner.json'])
  releaseFolder(dataDir)
})

test('lets go of its own folder alone', () => {
  recordProcess(dataDir, 'owner', process.ppid, 'SIGTERM')
  releaseFolder(dataDir)
  expect(() => claimFolder(dataDir)).toThrow(`is in use by process ${process.ppid}`)
})

const file = (name: string) => {
  const path = join(dataDir, name)
  writeFileSync(path, '')
  return path
}
const linkToNothing = (name: string) => {
  const path = join(dataDir, name)
  symlinkSync(join(dataDir, 'nothing'), path)
  return path
}

test.each([
  ['a file', () => file('file')],
  ['in a file', () => join(file('file'), 'folder')],
  ['a link to nothing', () => linkToNothing('link')],
  ['below a link to nothing', () => join(linkToNothing('link'), 'folder')],
])('a data folder that is %s is refused with a sentence', (_what, make) => {
  const folder = make()
  expect(() => claimFolder(folder)).toThrow(`${folder} cannot be the data folder`)
  expect(() => claimFolder(folder)).toThrow('Set SVC_DATA_DIR to another one.')
})

test.runIf(process.platform === 'linux')('nor is it one in which nobody can make a folder, at once', () => {
  const code = 'const { claimFolder } = await import(process.argv[1]); claimFolder("/proc/folder/x")'
  const { stderr } = spawnSync(process.execPath, ['-e', code, join(import.meta.dirname, 'claim.ts')], {
    encoding: 'utf8',
    timeout: 20_000,
  })
  expect(stderr).toContain('/proc/folder/x cannot be the data folder')
})

/** Claims one folder after the other, each at a moment of its own, and says of each whether it has it. The last milliseconds pass awake. */
const claimant = `
  const { claimFolder } = await import(process.argv[1])
  for (const [n, folder] of process.argv.slice(3).entries()) {
    const moment = Number(process.argv[2]) + n * 20
    await new Promise((resolve) => setTimeout(resolve, moment - 5 - Date.now()))
    while (Date.now() < moment);
    try { claimFolder(folder); console.log('claimed ' + n) } catch (err) { console.log(err.message) }
  }
  console.log('done')
  process.stdin.resume()
`

test('of two that claim a folder at the same moment one has it, be it new or that of a process that is gone', async () => {
  const folders = Array.from({ length: 20 }, (_, n) => join(dataDir, String(n)))
  for (const folder of folders.slice(10)) {
    mkdirSync(join(folder, 'run'), { recursive: true })
    writeFileSync(join(folder, 'run/owner.json'), '{"pid":1,"identity":"gone","stopSignal":"SIGTERM"}')
  }
  const args = ['-e', claimant, join(import.meta.dirname, 'claim.ts'), String(Date.now() + 1_500), ...folders]
  const all = [1, 2].map(() => spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] }))
  const outputs = all.map(({ stdout }) => text(stdout))
  // Nobody lets go of what he has before all have asked.
  await Promise.all(
    all.map(
      ({ stdout }) =>
        new Promise<void>((resolve) =>
          stdout.on('data', (data) => {
            if (String(data).includes('done')) resolve()
          }),
        ),
    ),
  )
  for (const one of all) one.stdin.end()
  const lines = (await Promise.all(outputs)).join('').split('\n')
  expect(lines.filter((line) => line.startsWith('claimed')).toSorted()).toEqual(
    folders.map((_, n) => `claimed ${n}`).toSorted(),
  )
  expect(lines.filter((line) => line.includes('is in use by process'))).toHaveLength(20)
})
