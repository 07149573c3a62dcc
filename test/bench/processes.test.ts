import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { cpuBetween, cpuMsOf, memoryMibOf, sumOf } from './processes.ts'

const burn = 'const end = Date.now() + 300; while (Date.now() < end);'

test('counts the CPU of a whole tree, also of a child that has ended since', async () => {
  const program = `require('node:child_process').execFileSync(process.execPath, ['-e', ${JSON.stringify(burn)}]); console.log('done'); setInterval(() => {}, 1000)`
  const parent = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void parent.kill('SIGKILL'))
  const roots = { tree: [parent.pid ?? 0] }
  const before = cpuMsOf(roots)
  await once(parent.stdout, 'data')
  const used = cpuBetween(before, cpuMsOf(roots))
  expect(used['tree']).toBeGreaterThan(150)
  expect(sumOf(used)).toBe(used['tree'])
})

test('reads nothing of a process that is not there', () => {
  expect(cpuMsOf({ gone: [2 ** 22 + 1] })).toEqual({ gone: 0 })
  expect(memoryMibOf({ gone: [2 ** 22 + 1] })).toEqual({ gone: 0 })
})

test('reads the memory of a process', () => {
  expect(memoryMibOf({ self: [process.pid] })['self']).toBeGreaterThan(20)
})
