import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { ofEach } from '../../journeys/start-stack.ts'
import { memoryMibOf } from '../../bench/processes.ts'
import { until } from '../../journeys/client.ts'
import type { Call } from '../history/history.ts'
import { live, type Lived } from '../load/live.ts'
import { openWindows } from '../load/open-windows.ts'
import { settle } from '../load/settle.ts'
import { type Answered, startSteadyLoad } from '../load/steady.ts'
import type { Subscriber } from '../load/subscriber.ts'
import { untilBack } from '../load/until-back.ts'
import { type Arena, openArena } from '../nemesis/arena.ts'

const replicas = ofEach(2)
let arena: Arena | undefined
let subscriber: Subscriber | undefined
beforeAll(async () => {
  arena = await openArena(replicas)
})
beforeEach(({ skip }) => skip(!arena, 'The servers run in containers.'))
afterEach(() => subscriber?.close())
afterAll(() => arena?.remove())

function place(): Arena {
  if (!arena) throw new Error('There is nothing to break.')
  return arena
}

function signal(name: NodeJS.Signals) {
  const pid = place().servers.nats.process.pid()
  if (pid) process.kill(pid, name)
}

const expectLawful = async ({ scene, people }: Lived) => expect(await settle(scene, people, 180_000)).toEqual([])

const pace = 100
const frozenMs = 30_000
/**
 * A frozen server is given up after at most 6 s; what may be repeated waits 2 s more for another one, and with a look-up of the key
 * whoever came meanwhile and shares it.
 */
const noticedMs = 8_200
const givenUpMs = 9_000
/** Of 99 answers in 100, once the gateway knows: at once, and a busy machine is given more. */
const refusedWithinMs = 250
/**
 * What a process may hold beyond what it held before: 700 requests of the seconds before it knows, of some 30 KiB each with
 * their sockets, and a heap of 100 MiB that has grown by 40 %. Measured: 13.
 */
const mostGrowthMib = 64

/** The most that each process held, in MiB, until it is stopped. */
function watchMemory() {
  const most = new Map<string, number>()
  const look = () => {
    const { services } = place().stack.read()
    for (const [name, instances] of Object.entries(services)) {
      for (const [n, { pid }] of instances.entries()) {
        const { pss = 0 } = memoryMibOf({ one: [pid ?? 0] })['one'] ?? {}
        most.set(`${name}-${n + 1}`, Math.max(pss, most.get(`${name}-${n + 1}`) ?? 0))
      }
    }
  }
  look()
  const timer = setInterval(look, 1_000)
  return () => {
    clearInterval(timer)
    return most
  }
}

/** The share of them that took no longer, in milliseconds. */
function slowestOf(some: Answered[], share: number) {
  const sorted = some.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)
  return Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0)
}

const shown = (most: Map<string, number>) => [...most].map(([name, mib]) => `${name} ${Math.round(mib)}`).join(', ')

test(`nats-server frozen for 30 s under ${pace} requests a second: refused fast, memory bounded, back by itself, nothing lost`, async () => {
  const { client, phones } = await openWindows(place().stack.read(), 60)
  const frozen = { from: 0, to: 0 }
  const load = startSteadyLoad(place().stack.read(), phones, pace)
  const calm = watchMemory()
  const life = await live(place(), {}, async ({ tenant }) => {
    await sleep(10_000)
    const before = calm()
    frozen.from = performance.now()
    signal('SIGSTOP')
    const meanwhile = watchMemory()
    await sleep(frozenMs)
    const during = meanwhile()
    frozen.to = performance.now()
    signal('SIGCONT')
    const { at } = await untilBack(tenant)
    const backMs = at - Date.now() + performance.now() - frozen.to
    const afterwards = watchMemory()
    await sleep(10_000)
    const after = afterwards()
    console.log(`MiB before: ${shown(before)}\nwhile frozen: ${shown(during)}\nafter: ${shown(after)}`)
    console.log(`Back after ${Math.round(backMs)} ms`)
    for (const [name, mib] of before) {
      expect(Math.max(during.get(name) ?? 0, after.get(name) ?? 0) - mib, name).toBeLessThan(mostGrowthMib)
    }
    expect(backMs).toBeLessThan(3_000)
  })
  subscriber = life.subscriber
  const { answers, accepted } = await load.stop()
  const ofTime = (from: number, to: number) =>
    answers.filter(({ startedAt }) => startedAt > frozen.from + from && startedAt < frozen.from + to)
  const [unnoticed, noticed] = [ofTime(500, noticedMs), ofTime(noticedMs, frozenMs - 500)]
  const slowest = slowestOf(unnoticed, 1)
  const [usual, slow] = [slowestOf(noticed, 0.5), slowestOf(noticed, 0.99)]
  console.log(`Refused after at most ${slowest} ms at first; then p50 ${usual} ms, p99 ${slow} ms`)
  const refused = (some: Answered[]) => some.filter(({ status, retryAfter }) => status === 503 && retryAfter !== null)
  expect(refused(unnoticed)).toHaveLength(unnoticed.length)
  expect(refused(noticed)).toHaveLength(noticed.length)
  expect(noticed.length).toBeGreaterThan((pace * (frozenMs - noticedMs)) / 2_000)
  expect(slowest).toBeLessThan(givenUpMs)
  expect(slow).toBeLessThan(refusedWithinMs)
  await expectLawful(life)
  await until(async () => {
    const sent: string[] = (await client.sent()).map(({ body }) => body.biz_opaque_callback_data)
    expect(accepted.filter((id) => !sent.includes(id))).toEqual([])
    expect(new Set(sent).size).toBe(sent.length)
  }, 60_000)
})

const killEveryMs = 5_000
const killForMs = 120_000

test('nats-server killed every 5 s for two minutes: 503 with Retry-After meanwhile, back within 3 s each time, nothing lost', async () => {
  const pauses: number[] = []
  const failed: Call[] = []
  const life = await live(place(), {}, async ({ tenant }) => {
    for (const endsAt = Date.now() + killForMs; Date.now() < endsAt;) {
      const killedAt = Date.now()
      signal('SIGKILL')
      // The process is gone, but its port may not know it yet.
      await sleep(50)
      const back = await untilBack(tenant)
      pauses.push(back.at - killedAt)
      failed.push(...back.failed)
      await sleep(killEveryMs - (Date.now() - killedAt))
    }
  })
  subscriber = life.subscriber
  console.log(`Back after ${pauses.join(', ')} ms`)
  expect(pauses.length).toBeGreaterThanOrEqual(killForMs / killEveryMs)
  expect(failed.filter(({ status, retryAfter }) => status !== 503 || retryAfter === null)).toEqual([])
  expect(Math.max(...pauses)).toBeLessThan(3_000)
  await expectLawful(life)
})
