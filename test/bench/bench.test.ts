import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import type { FigureName } from './figures.ts'
import type { GoalName } from './goals/goals.ts'

interface Results {
  failures: string[]
  figures: Array<{ name: FigureName; rounds: number[] }>
}

/**
 * Floors with a database and without, a subscriber, the project at a pace and as fast as it goes, and what it shows. The
 * others are run by whoever measures: `npm run bench -- --quick --only …`.
 */
const slice: Partial<Record<GoalName, FigureName[]>> = {
  me: ['me'],
  latency: ['upstreamP50', 'upstreamP99', 'eventP50', 'eventP99'],
  callbacks: ['callbacks', 'callbacksAccepted'],
  memory: ['memoryAtRest', 'memoryLoaded'],
}

test('a quick slice measures its goals, and its figures are sane', { timeout: 900_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-test-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const args = [join(import.meta.dirname, 'main.ts'), '--quick', '--only', Object.keys(slice).join(',')]
  const bench = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void bench.kill('SIGTERM'))
  const [output, [code]] = await Promise.all([text(bench.stdout), once(bench, 'exit')])
  expect(code, output).toBe(0)

  const { failures, figures } = JSON.parse(readFileSync(join(folder, 'bench-results.json'), 'utf8')) as Results
  expect(failures).toEqual([])
  expect(figures.map(({ name }) => name).toSorted()).toEqual(Object.values(slice).flat().toSorted())
  for (const { name, rounds } of figures) {
    expect(rounds, name).toHaveLength(1)
    expect(rounds[0], name).toBeGreaterThan(0)
    expect(rounds[0], name).toBeLessThan(Infinity)
  }
  const value = (name: FigureName) => figures.find((figure) => figure.name === name)?.rounds[0] ?? NaN
  expect(value('upstreamP99')).toBeGreaterThanOrEqual(value('upstreamP50'))
  expect(value('eventP99')).toBeGreaterThanOrEqual(value('eventP50'))
  expect(value('memoryLoaded')).toBeGreaterThanOrEqual(value('memoryAtRest'))
  // However busy the machine: nobody serves, with its network and its database, a thousand times as fast as what does a part of it.
  for (const name of ['me', 'callbacks', 'callbacksAccepted'] as const) expect(value(name), name).toBeLessThan(1_000)
  expect(output).toMatch(/GET \/me against fastify hello, c=64 +\d/)
})

test('says what it does not understand', async () => {
  const bench = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), '--only', 'me,nothing'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [complaint, [code]] = await Promise.all([text(bench.stderr), once(bench, 'exit')])
  expect(complaint).toContain('there is no goal "nothing"')
  expect(code).toBe(1)
})
