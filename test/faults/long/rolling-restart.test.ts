import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { serviceNames } from '@app/deploy/stack/options.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../journeys/client.ts'
import { ofEach, type StartedStack, startStack } from '../../journeys/start-stack.ts'
import { openWindows } from '../load/open-windows.ts'
import { startSteadyLoad } from '../load/steady.ts'

let stack: StartedStack
beforeAll(async () => {
  stack = await startStack(['--replicas', ofEach(2)])
})
afterAll(() => stack.remove())

/** Requests a second; a slow machine may be given fewer. */
const pace = Number(process.env['ROLLING_PACE'] ?? 500)
/** A service that is told to end has so long. */
const exitWithinMs = 25_000

const isThere = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Ends an instance in order, and waits until another one is in its place; answers how long the end took. */
async function restart(service: string, n: number): Promise<number> {
  const { pid } = stack.read().services[service]?.[n] ?? {}
  if (!pid) throw new Error(`There is no ${service} ${n}.`)
  const startedAt = performance.now()
  process.kill(pid, 'SIGTERM')
  while (isThere(pid)) await sleep(20)
  const tookMs = performance.now() - startedAt
  await until(async () => {
    const next = stack.read().services[service]?.[n]
    expect(next?.pid).not.toBe(pid)
    const { statusCode, body } = await request(`${next?.url ?? ''}/readyz`)
    await body.dump()
    expect(statusCode).toBe(200)
  }, 40_000)
  return tookMs
}

test(
  'every process is ended in order, one after the other, under load: no request fails, each ends in time, and every send arrives once',
  { timeout: 240_000 },
  async () => {
    // The platform takes 45 at once to one person, then one in 6 s.
    const { client, phones } = await openWindows(stack.read(), Math.ceil(pace * 0.6))
    const load = startSteadyLoad(stack.read(), phones, pace)
    const times: number[] = []
    await sleep(500)
    for (const service of serviceNames) {
      for (const n of [0, 1]) {
        times.push(await restart(service, n))
        // Who was refused by the one may be about to ask the other.
        await load.settled()
      }
    }
    await sleep(500)
    const { answers, accepted } = await load.stop()
    const failures = answers
      .filter(({ status }) => status !== 200)
      .map(({ status, path, text }) => `${status} ${path}: ${text}`)
    const took = answers.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)
    const shown = [0.5, 0.99, 0.9999].map((share) => Math.round(took[Math.floor(took.length * share)] ?? 0)).join(', ')
    console.log(
      `${answers.length} requests, p50, p99, max ${shown} ms; the ends took ${times.map((ms) => Math.round(ms)).join(', ')} ms`,
    )
    expect(failures.slice(0, 20), `${failures.length} failed`).toEqual([])
    expect(Math.max(...times)).toBeLessThan(exitWithinMs)
    expect(accepted.length).toBeGreaterThan(50)
    // The number sends 80 a second, and a quarter of the pace was sends: what waits may be as many as a minute takes.
    await until(async () => {
      const sent: string[] = (await client.sent()).map(({ body }) => body.biz_opaque_callback_data)
      expect(accepted.filter((id) => !sent.includes(id))).toEqual([])
      expect(new Set(sent).size).toBe(sent.length)
    }, 150_000)
  },
)
