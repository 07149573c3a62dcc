import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, inject, onTestFinished, test } from 'vitest'
import { makeClocks } from './clocks.ts'

const program = `
  setInterval(() => console.log(JSON.stringify({
    now: Date.now(), made: new Date().getTime(), said: Date.parse(Date()), given: new Date(7).getTime(),
    isDate: new Date() instanceof Date, monotonicMs: performance.now(),
  })), 20)
`

interface Line {
  now: number
  made: number
  said: number
  given: number
  isDate: boolean
  monotonicMs: number
}

test('a clock runs ahead, behind and right again while its process runs, and the monotonic one goes on', async () => {
  const clocks = makeClocks(join(inject('runFolder'), 'clocks'))
  const child = spawn(process.execPath, ['-e', program], { env: { ...process.env, ...clocks.env } })
  onTestFinished(() => void child.kill())
  const lines: Line[] = []
  createInterface(child.stdout).on('line', (line) => lines.push(JSON.parse(line) as Line))
  await once(child.stdout, 'data')
  const wrongBy = () => Math.round(((lines.at(-1)?.now ?? 0) - Date.now()) / 1_000) + 0
  expect(wrongBy()).toBe(0)
  for (const byMs of [90_000, -90_000, 0]) {
    clocks.skew(child.pid ?? 0, byMs)
    await expect.poll(wrongBy).toBe(byMs / 1_000)
    const { now, made, said, given, isDate } = lines.at(-1) ?? ({} as Partial<Line>)
    expect([Math.abs((made ?? 0) - (now ?? 0)) < 50, Math.abs((said ?? 0) - (now ?? 0)) < 1_050]).toEqual([true, true])
    expect({ given, isDate }).toEqual({ given: 7, isDate: true })
  }
  const steps = lines.slice(1).map(({ monotonicMs }, n) => monotonicMs - (lines[n]?.monotonicMs ?? 0))
  expect(Math.min(...steps)).toBeGreaterThan(0)
  expect(Math.max(...steps)).toBeLessThan(5_000)
})
