import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compileCache } from '@app/test/compile-cache.ts'
import { runCode } from '@app/test/run-code.ts'
import { expect, onTestFinished, test } from 'vitest'
import { openLogLines } from './log-lines.ts'

const tellLost = (count: number) => `${count} lost\n`

function folder() {
  const path = mkdtempSync(join(tmpdir(), 'lines-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

function open(path: string, flags: string | number) {
  const fd = openSync(path, flags)
  onTestFinished(() => closeSync(fd))
  return fd
}

/** A pipe, of which neither end waits for the other. */
function openPipe() {
  const path = join(folder(), 'pipe')
  execFileSync('mkfifo', [path])
  const from = open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const to = open(path, constants.O_WRONLY | constants.O_NONBLOCK)
  const chunk = Buffer.alloc(1024 * 1024)
  const read = () => {
    try {
      return chunk.toString('utf8', 0, readSync(from, chunk))
    } catch {
      return ''
    }
  }
  return { to, read }
}

test('lines come in their order: many at once, few within a second, the last when the process ends', async () => {
  const file = join(folder(), 'log')
  const lines = openLogLines(open(file, 'w'), { tellLost })
  const written = Array.from({ length: 3_000 }, (_, n) => `${n} ü\n`)
  written.forEach((line) => lines.write(line))
  await expect.poll(() => readFileSync(file, 'utf8'), { timeout: 3_000 }).toBe(written.join(''))
  lines.write('few\n')
  await expect.poll(() => readFileSync(file, 'utf8'), { timeout: 3_000 }).toBe(`${written.join('')}few\n`)
  lines.write('last\n')
  lines.end()
  expect(readFileSync(file, 'utf8')).toBe(`${written.join('')}few\nlast\n`)
})

test('who flushes is called back when all is written', async () => {
  const file = join(folder(), 'log')
  const lines = openLogLines(open(file, 'w'), { tellLost })
  lines.write('one\n')
  await new Promise<void>((done) => lines.flush(done))
  expect(readFileSync(file, 'utf8')).toBe('one\n')
})

test('a reader that has stopped gets what there is room for when it goes on, and how much was lost', async () => {
  const { to, read } = openPipe()
  const lines = openLogLines(to, { mostChars: 200_000, tellLost })
  const written = Array.from({ length: 4_000 }, (_, n) => `${n}`.padEnd(99, '.') + '\n')
  written.forEach((line) => lines.write(line))
  let said = ''
  await expect.poll(() => (said += read()), { timeout: 5_000, interval: 10 }).toMatch(/\n\d+ lost\n/)
  lines.write('after\n')
  await expect.poll(() => (said += read()), { timeout: 5_000, interval: 10 }).toMatch(/after\n$/)
  const [, whole = '', lost] = /^(.*\n)(\d+) lost\nafter\n$/s.exec(said) ?? []
  expect(whole).toBe(written.slice(0, 4_000 - Number(lost)).join(''))
  expect(Number(lost)).toBeGreaterThan(1_000)
})

test('a process that ends with more lines than a pipe holds has written them all', async () => {
  const code = `
    import { createLog } from './log.ts'
    const log = createLog('test', 'info')
    for (let n = 0; n < 5_000; n++) log.info({ n, pad: 'x'.repeat(100) }, 'a line')
    process.exit(3)
  `
  const { said } = await runCode(import.meta.dirname, code)
  const numbers = said
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { n: number }).n)
  expect(numbers).toEqual(Array.from({ length: 5_000 }, (_, n) => n))
})

// No file of another system is always full.
test.skipIf(process.platform !== 'linux')('a disk that is full keeps neither a flush nor an end waiting', async () => {
  const lines = openLogLines(open('/dev/full', 'w'), { mostChars: 10_000, tellLost })
  for (let n = 0; n < 1_000; n++) lines.write(`${n}\n`.padStart(100))
  await new Promise<void>((done) => lines.flush(done))
  lines.end()
})

test.skipIf(process.platform !== 'linux').each([
  ['a disk that is full', 'exec "$@" > /dev/full'],
  ['a reader that is gone', '"$@" | true; exit ${PIPESTATUS[0]}'],
])('to a process %s is no fault, nor when it ends', async (_, command) => {
  const code = `
    import { createLog } from './log.ts'
    const log = createLog('test', 'info')
    for (let n = 0; n < 1_000; n++) log.info({ n }, 'a line')
    setTimeout(() => log.flush(() => process.exit(3)), 300)
  `
  const args = ['-c', command, 'sh', process.execPath, '--input-type=module', '--eval', code]
  const child = spawn('bash', args, { cwd: import.meta.dirname, env: compileCache })
  onTestFinished(() => void child.kill('SIGKILL'))
  expect(await once(child, 'close')).toEqual([3, null])
})
