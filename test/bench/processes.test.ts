import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { allMemory, cpuBetween, cpuMsOf, memoryMibOf, sumOf, watchOthers } from './processes.ts'

/** Uses 300 ms of CPU, however long that takes. */
const burn = `
  const used = () => process.cpuUsage().user + process.cpuUsage().system
  while (used() < 300_000) for (let n = 0; n < 1e6; n++);
`

test('counts the CPU of a whole tree, also of a child that has ended since', async () => {
  const program = `require('node:child_process').execFileSync(process.execPath, ['-e', ${JSON.stringify(burn)}]); console.log('done'); setInterval(() => {}, 1000)`
  const parent = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void parent.kill('SIGKILL'))
  const roots = { tree: [parent.pid ?? 0] }
  const before = cpuMsOf(roots)
  await once(parent.stdout, 'data')
  const used = cpuBetween(before, cpuMsOf(roots))
  expect(used['tree']).toBeGreaterThan(280)
  expect(sumOf(used)).toBe(used['tree'])
})

test('reads nothing of a process that is not there', () => {
  expect(cpuMsOf({ gone: [2 ** 22 + 1] })).toEqual({ gone: 0 })
  expect(memoryMibOf({ gone: [2 ** 22 + 1] })).toEqual({ gone: { pss: 0, rss: 0 } })
})

test('splits the pages that processes have in common between them, and counts them in full in their resident sets', async () => {
  const child = spawn(process.execPath, ['-e', "console.log('up'); setInterval(() => {}, 1000)"], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  const memory = memoryMibOf({ self: [process.pid], child: [child.pid ?? 0] })
  for (const { pss, rss } of Object.values(memory)) {
    expect(pss).toBeGreaterThan(5)
    // Both run the pages of one node.
    expect(rss - pss).toBeGreaterThan(5)
  }
  const { self, child: other } = memory
  expect(allMemory(memory).pss).toBe((self?.pss ?? NaN) + (other?.pss ?? NaN))
})

test('does not take what its own tree uses for the work of others', async () => {
  const cores = availableParallelism()
  const usedByOthers = watchOthers()
  const before = cpuMsOf({ self: [process.pid] })
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: cores }, () => once(spawn(process.execPath, ['-e', burn]), 'exit')))
  const ours = sumOf(cpuBetween(before, cpuMsOf({ self: [process.pid] }))) / (performance.now() - startedAt) / cores
  // The whole machine was busy: counted twice, ours would make more than there is.
  expect(usedByOthers() + ours).toBeLessThan(1 + ours / 2)
})
