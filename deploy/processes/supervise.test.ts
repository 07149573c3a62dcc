import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { identityOf } from './identity.ts'
import { sizeOf } from './log-file.ts'
import { findRecorded } from './records.ts'
import { createDelays, type Program, supervise, type Supervised } from './supervise.ts'
import { untilReady } from './until-ready.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'supervise-'))
afterAll(() => rmSync(dataDir, { recursive: true }))

const forever = 'setInterval(() => {}, 1000)'
const nodeProgram = (name: string, code: string): Program => ({
  name,
  command: process.execPath,
  args: ['-e', code],
  env: { PATH: process.env['PATH'] },
  stopSignal: 'SIGTERM',
  stopMs: 300,
})

const isAlive = (pid: number | undefined) => pid !== undefined && identityOf(pid) !== undefined
const untilAlive = (program: Supervised) => untilReady(program, async () => isAlive(program.pid()), 5_000)

/** Answers the id of the process that took the place of this one. */
async function untilReplaced(program: Supervised, pid: number | undefined) {
  await untilReady(program, async () => program.pid() !== pid && isAlive(program.pid()), 5_000)
  return program.pid()
}

test('starts a program again that was killed, and says so', async () => {
  const onDeath = vi.fn<(sentence: string) => void>()
  const onRestart = vi.fn<() => void>()
  const program = await supervise(dataDir, nodeProgram('killed', forever), { onDeath, onRestart })
  const first = program.pid()
  if (first !== undefined) process.kill(first, 'SIGKILL')
  const second = await untilReplaced(program, first)
  expect(onDeath).toHaveBeenCalledWith(expect.stringContaining('killed was ended by SIGKILL'))
  expect(onRestart).toHaveBeenCalledOnce()
  expect(findRecorded(dataDir, 'killed')).toBe(second)
  await program.stop()
})

test('starts a program again also when it cannot be recorded, as on a full disk', async () => {
  const program = await supervise(dataDir, nodeProgram('unrecorded', forever))
  const first = program.pid()
  // In the place of the file that it is written to.
  mkdirSync(join(dataDir, 'run/unrecorded.json.new'))
  if (first !== undefined) process.kill(first, 'SIGKILL')
  await untilReplaced(program, first)
  await program.stop()
})

test('waits longer after each short life, for 5 s at most, and after a sound one no longer than at first', () => {
  const delays = createDelays()
  const delaysAfter = (...lives: number[]) => lives.map((lifeMs) => delays.after(lifeMs))
  expect(delaysAfter(1, 1, 1, 1, 1, 1, 1, 1)).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  expect(delaysAfter(3_000, 1)).toEqual([100, 200])
})

test('says of a program that cannot be started why', async () => {
  const { promise: death, resolve: onDeath } = Promise.withResolvers<string>()
  const nowhere = { ...nodeProgram('nowhere', forever), cwd: join(dataDir, 'nowhere') }
  const program = await supervise(dataDir, nowhere, { onDeath })
  expect(await death).toContain('nowhere could not be started: spawn')
  await program.stop()
})

test('a program that ends by itself while all of them end is let go', async () => {
  const program = await supervise(dataDir, nodeProgram('ending', ''), { isEnding: () => true })
  await vi.waitUntil(() => program.pid() === undefined, 10_000)
  expect(program.deaths()).toBe(0)
  await program.stop()
})

test('a program that is stopped before it is started again stays away', async () => {
  const { promise: death, resolve: onDeath } = Promise.withResolvers<string>()
  const onRestart = vi.fn<() => void>()
  const program = await supervise(dataDir, nodeProgram('short', ''), { onDeath, onRestart })
  await death
  await program.stop()
  // More than the wait for the first start.
  await sleep(200)
  expect(onRestart).not.toHaveBeenCalled()
})

test.runIf(process.platform === 'linux')('the log of a program is open in the program alone', async () => {
  const program = await supervise(dataDir, nodeProgram('logging', forever))
  const opened = readdirSync('/proc/self/fd').map((fd) => fileOpenedAs(fd))
  expect(opened).not.toContain(program.logFile)
  await program.stop()
})

function fileOpenedAs(fd: string) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    // It was closed in between.
    return undefined
  }
}

test('ends a program for good at stop, and starts it anew at start', async () => {
  const program = await supervise(dataDir, nodeProgram('stopped', forever))
  await untilAlive(program)
  const pid = program.pid()
  await program.stop()
  expect(isAlive(pid)).toBe(false)
  expect(program.pid()).toBeUndefined()
  expect(findRecorded(dataDir, 'stopped')).toBeUndefined()
  program.start()
  await untilAlive(program)
  await program.stop()
})

const deaf = `process.on('SIGTERM', () => {}); ${forever}; console.log('deaf')`
const untilDeaf = (program: Supervised) =>
  untilReady(program, async () => readFileSync(program.logFile, 'utf8').includes('deaf'), 5_000)

test('kills a program that does not end in time, and what it has started itself', async () => {
  const code = `const { pid } = require('node:child_process').spawn('sleep', ['60']); console.log('child ' + pid); ${deaf}`
  const program = await supervise(dataDir, nodeProgram('stubborn', code))
  await untilDeaf(program)
  const pid = program.pid()
  const child = Number(/child (\d+)/.exec(program.lastWords())?.[1])
  expect(isAlive(child)).toBe(true)
  await program.stop()
  expect(isAlive(pid)).toBe(false)
  await vi.waitUntil(() => !isAlive(child), 5_000)
})

test('gives up on a program that keeps ending, with the end of its log', async () => {
  const program = await supervise(dataDir, nodeProgram('broken', 'console.error("no such table"); process.exit(3)'))
  await expect(untilReady(program, async () => false, 30_000)).rejects.toThrow(
    /broken keeps ending(.|\n)*no such table/,
  )
  expect(program.isStopped()).toBe(true)
})

test('gives up at once on a program that refuses its settings, with what it said this time', async () => {
  const onDeath = vi.fn<() => void>()
  const code = 'console.error(`PORT must be ${"a number"}`); process.exit(78)'
  mkdirSync(join(dataDir, 'logs'), { recursive: true })
  writeFileSync(join(dataDir, 'logs/refusing.log'), 'said at an earlier start\n')
  const program = await supervise(dataDir, nodeProgram('refusing', code), { onDeath })
  const waiting = untilReady(program, async () => false, 30_000)
  await expect(waiting).rejects.toThrow(/^refusing cannot start with these settings.*:\nPORT must be a number$/)
  expect(onDeath).toHaveBeenCalledOnce()
})

test('the log of a program that runs for long does not grow for ever', async () => {
  const code = `process.stdout.write('x'.repeat(21 * 2 ** 20)); ${forever}; setInterval(() => console.log('on'), 50)`
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const program = await supervise(dataDir, nodeProgram('talkative', code))
  await vi.waitUntil(() => sizeOf(program.logFile) > 21 * 2 ** 20, 15_000)
  // When it is looked at next.
  vi.advanceTimersByTime(10_000)
  expect(sizeOf(`${program.logFile}.1`)).toBeGreaterThan(20 * 2 ** 20)
  await vi.waitUntil(() => readFileSync(program.logFile, 'utf8').startsWith('on\n'), 5_000)
  await program.stop()
})

test('ends what an earlier start of the same name left running', async () => {
  const left = await supervise(dataDir, nodeProgram('left', forever))
  await untilAlive(left)
  const pid = left.pid()
  const next = await supervise(dataDir, nodeProgram('left', forever))
  expect(isAlive(pid)).toBe(false)
  await Promise.all([left.stop(), next.stop()])
})

test('kills what an earlier start left running and does not end in time', async () => {
  const left = await supervise(dataDir, nodeProgram('left-deaf', deaf))
  await untilDeaf(left)
  const pid = left.pid()
  const next = await supervise(dataDir, nodeProgram('left-deaf', forever))
  expect(isAlive(pid)).toBe(false)
  await Promise.all([left.stop(), next.stop()])
})

test.runIf(process.platform === 'linux')('takes a program along when its starter is killed', async () => {
  const code = `
    import { supervise } from ${JSON.stringify(new URL('supervise.ts', import.meta.url).href)}
    const program = ${JSON.stringify(nodeProgram('orphan', forever))}
    await supervise(${JSON.stringify(dataDir)}, program)
  `
  const starter = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'inherit' })
  await vi.waitUntil(() => findRecorded(dataDir, 'orphan'), 10_000)
  const pid = findRecorded(dataDir, 'orphan')
  // The tie is made by the program itself, just before it becomes what it shall be.
  await vi.waitUntil(() => pid !== undefined && commandOf(pid).includes('node'), 10_000)
  starter.kill('SIGKILL')
  await vi.waitUntil(() => !isAlive(pid), 10_000)
})

function commandOf(pid: number) {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] ?? ''
}
