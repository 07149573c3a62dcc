import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { type FigureName, figureKinds } from './figures.ts'
import { goalNames } from './goals/goals.ts'

interface Results {
  failures: string[]
  figures: Array<{ name: FigureName; rounds: number[] }>
}

const figuresOfOtherPeers: FigureName[] = ['fanOutPgBoss', 'fanOutGraphile']

test('a quick slice measures every goal, the soak too, and its figures are sane', { timeout: 900_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-test-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const args = [join(import.meta.dirname, 'main.ts'), '--quick', '--only', goalNames.join(',')]
  const bench = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void bench.kill('SIGTERM'))
  const [output, [code]] = await Promise.all([text(bench.stdout), once(bench, 'exit')])
  expect(code, output).toBe(0)

  const { failures, figures } = JSON.parse(readFileSync(join(folder, 'bench-results.json'), 'utf8')) as Results
  expect(failures).toEqual([])
  const names = Object.keys(figureKinds).filter((name) => !figuresOfOtherPeers.some((other) => other === name))
  expect(figures.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  for (const { name, rounds } of figures) {
    // Of a backlog it is measured until it is drained.
    if (name !== 'backlogBeside') expect(rounds, name).toHaveLength(1)
    expect(rounds[0], name).toBeGreaterThanOrEqual(name.endsWith('Scans') ? 0 : Number.MIN_VALUE)
    expect(rounds[0], name).toBeLessThan(Infinity)
  }
  const value = (name: FigureName) => figures.find((figure) => figure.name === name)?.rounds[0] ?? NaN
  expect(value('upstreamP99')).toBeGreaterThanOrEqual(value('upstreamP50'))
  expect(value('eventP99')).toBeGreaterThanOrEqual(value('eventP50'))
  expect(value('sendCpuWhole')).toBeGreaterThanOrEqual(value('sendCpu'))
  expect(value('memoryLoaded')).toBeGreaterThanOrEqual(value('memoryAtRest'))
  // Lists are read by index, however busy the machine.
  expect([value('listScans'), value('deliveryScans')]).toEqual([0, 0])
  // Whatever the machine: nobody serves, with its network and its database, fifty times as fast as what does a part of it.
  for (const name of ['me', 'send64', 'send256', 'callbacks', 'list'] as const)
    expect(value(name), name).toBeLessThan(50)
  expect(output).toMatch(/GET \/me against fastify hello, c=64 +\d/)
  // The soak tells what memory did, and what waits at the end.
  for (const service of ['gateway', 'messaging', 'directory', 'platform', 'webhooks'])
    expect(output).toMatch(new RegExp(`${service}: \\d+ → \\d+ MiB resident, -?[\\d.]+ MiB an hour: too short`))
  expect(output).toMatch(/120 sends in 0.1 minutes, 480 events delivered: all/)
  expect(output).toMatch(/waiting at the end: sends \d+, callbacks \d+, events \d+, deliveries \d+; done/)
})

test('says what it does not understand', async () => {
  const bench = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), '--only', 'me,nothing'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [complaint, [code]] = await Promise.all([text(bench.stderr), once(bench, 'exit')])
  expect(complaint).toContain('there is no goal "nothing"')
  expect(code).toBe(1)
})
