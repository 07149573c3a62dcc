import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clientOf, newPhone, until } from '../journeys/client.ts'
import { type StartedStack, startStack } from '../journeys/start-stack.ts'

const services = ['gateway', 'messaging', 'directory', 'platform', 'webhooks']
let stack: StartedStack
beforeAll(async () => {
  stack = await startStack(['--replicas', services.map((name) => `${name}=2`).join(',')])
})
afterAll(() => stack.remove())

/** Requests a second. A machine of CI has enough to do with the restarts themselves. */
const pace = Number(process.env['ROLLING_PACE'] ?? 100)
/** A service that is told to end has so long. */
const exitWithinMs = 25_000

interface Load {
  /** Ends it; answers what was accepted, and what failed. */
  stop: () => Promise<{ asked: number; accepted: string[]; failures: string[] }>
}

/**
 * Asks as clients behind a balancer do: where nobody listens, or a connection is ended before it was answered, the other
 * gateway is asked the same. Nothing else is tried again.
 */
function startLoad(phones: string[]): Load {
  const { api_key: key, phone_number_id: number, services: running } = stack.read()
  const gateways = (running['gateway'] ?? []).map(({ public_url: url = '' }) => url)
  const agents = gateways.map(() => new Agent({ connections: 64 }))
  const accepted: string[] = []
  const failures: string[] = []
  const asking: Promise<void>[] = []

  async function ask(n: number, path: string, body?: object) {
    for (const turn of [n, n + 1]) {
      const place = turn % gateways.length
      try {
        const answer = await request(`${gateways[place]}/v1${path}`, {
          ...(agents[place] && { dispatcher: agents[place] }),
          method: body ? 'POST' : 'GET',
          headers: {
            authorization: `Bearer ${key}`,
            ...(body && { 'content-type': 'application/json', 'idempotency-key': `rolling ${n}` }),
          },
          body: body ? JSON.stringify(body) : null,
        })
        const text = await answer.body.text()
        if (answer.statusCode !== 200) failures.push(`${path}: ${answer.statusCode} ${text}`)
        else if (body) accepted.push((JSON.parse(text) as { data: { id: string } }).data.id)
        return
      } catch (err) {
        if (turn === n + 1) failures.push(`${path}: ${String(err)}`)
      }
    }
  }

  const one = (n: number) => {
    if (n % 4 === 0) return ask(n, `/${number}/contacts?limit=5`)
    if (n % 4 === 1) return ask(n, '/webhook_subscriptions')
    if (n % 4 === 2) return ask(n, '/customers')
    const to = phones[Math.floor(n / 4) % phones.length]
    return ask(n, `/${number}/messages`, { messaging_product: 'chat', to, type: 'text', text: { body: `n${n}` } })
  }
  let n = 0
  const timer = setInterval(() => asking.push(one(n++)), 1_000 / pace)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(asking)
      await Promise.all(agents.map((agent) => agent.destroy()))
      return { asked: asking.length, accepted, failures }
    },
  }
}

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
    const client = clientOf(stack.read())
    // The platform takes 45 at once to one person, then one in 6 s.
    const phones = Array.from({ length: Math.ceil(pace * 0.6) }, newPhone)
    await Promise.all(phones.map((phone) => client.inbound(phone, 'hello')))
    await until(async () => {
      const { body } = await client.api('GET', `/${client.phone}/conversations?limit=100`)
      expect(body.data.length).toBeGreaterThanOrEqual(Math.min(100, phones.length))
    })
    const load = startLoad(phones)
    const times: number[] = []
    await sleep(500)
    for (const service of services) for (const n of [0, 1]) times.push(await restart(service, n))
    await sleep(500)
    const { asked, accepted, failures } = await load.stop()
    console.log(`${asked} requests; the ends took ${times.map((ms) => Math.round(ms)).join(', ')} ms`)
    expect(failures.slice(0, 20)).toEqual([])
    expect(Math.max(...times)).toBeLessThan(exitWithinMs)
    expect(accepted.length).toBeGreaterThan(50)
    await until(async () => {
      const sent: string[] = (await client.sent()).map(({ body }) => body.biz_opaque_callback_data)
      expect(accepted.filter((id) => !sent.includes(id))).toEqual([])
      expect(new Set(sent).size).toBe(sent.length)
    }, 60_000)
  },
)
