import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent as KeepAlive, get, type IncomingMessage } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { start } from '@app/shared/service/start.ts'
import { compileCache } from '@app/test/compile-cache.ts'
import { listen } from '@app/test/listen.ts'
import { startTestNats } from '@app/test/nats.ts'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { connectionsWithin } from './limits/open-files.ts'
import { startTestPlatform, type TestPlatform } from './testing/platform.ts'

type Nats = Awaited<ReturnType<typeof startTestNats>>
type Peer = Awaited<ReturnType<typeof start>>
let nats: Nats
let peer: Peer
let platform: TestPlatform
const running: ChildProcess[] = []

beforeAll(async () => {
  nats = await startTestNats()
  const env = { NATS_URL: nats.url, NATS_REPLICAS: 1, LOG_LEVEL: 'silent', PROBE_PORT: 0, PROBE_HOST: '127.0.0.1' }
  peer = await start('platform', env)
  platform = await startTestPlatform(peer)
})
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await peer.nc.close()
  await peer.probes.close()
  await nats.stop()
})

const settings = {
  PUBLIC_URL: 'http://gateway.example:8080',
  UPSTREAM_APP_SECRET: 'app-secret',
  UPSTREAM_VERIFY_TOKEN: 'verify-token',
  UPSTREAM_APP_ID: '1000',
  MEDIA_DIR: tmpdir(),
  PORT: '0',
  LOG_LEVEL: 'info',
}

/** Under `OPEN_FILES` it may open no more than that. */
function run({ OPEN_FILES: openFiles = 'unlimited', ...env }: NodeJS.ProcessEnv) {
  const limited = `ulimit -n ${openFiles} 2> /dev/null; exec "$@"`
  const child = spawn('sh', ['-c', limited, 'sh', process.execPath, join(import.meta.dirname, 'main.ts')], {
    env: { ...compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  }) as ChildProcessByStdio<null, Readable, Readable>
  running.push(child)
  return child
}

/** Starts the program and waits until it is ready. */
async function startGateway(env: NodeJS.ProcessEnv = {}) {
  const child = run({ ...settings, NATS_URL: nats.url, REDIS_URL: inject('redisUrl'), ...env })
  const lines = createInterface({ input: child.stdout })
  let url = ''
  for await (const line of lines) {
    const said = JSON.parse(line) as { msg: string; url: string; probes: string }
    if (said.msg === 'listening') url = said.url
    if (said.msg === 'ready') return { child, url, probes: said.probes }
  }
  throw new Error('it ended')
}

type Gateway = Awaited<ReturnType<typeof startGateway>>

/** One for several tests: it is started for the first of them, and for one after it has ended. */
function shared(env?: NodeJS.ProcessEnv) {
  let gateway: Promise<Gateway> | undefined
  return async () => {
    const hasEnded = await gateway?.then(({ child }) => child.exitCode ?? child.signalCode, String)
    if (!gateway || hasEnded) gateway = startGateway(env)
    return gateway
  }
}
const plain = shared()
const withFewFiles = shared({ REDIS_URL: 'redis://127.0.0.1:1', OPEN_FILES: '200' })

const codeOf = (err: unknown) => (err instanceof Error && 'code' in err ? err.code : undefined)

const statusOf = async (url: string, key?: string, dispatcher?: Agent) => {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const { statusCode, body } = await request(url, { headers, ...(dispatcher && { dispatcher }) })
  await body.dump()
  return statusCode
}

test('it is ready without Redis, and describes itself at its public address', async () => {
  const { url, probes } = await withFewFiles()
  expect(await statusOf(`${probes}/readyz`)).toBe(200)
  expect(await statusOf(`${url}/v1/me`, platform.issueKey().text)).toBe(200)
  const { body } = await request(`${url}/v1/openapi.json`)
  expect(await body.json()).toMatchObject({ servers: [{ url: 'http://gateway.example:8080/v1' }] })
})

test('who opens more connections than the gateway has files for neither ends it nor shuts others out', async () => {
  const { child, url } = await withFewFiles()
  const { port, hostname } = new URL(url)
  const strangers = Array.from({ length: 400 }, () => connect(Number(port), hostname).on('error', () => {}))
  onTestFinished(() => strangers.forEach((socket) => socket.destroy()))
  await Promise.all(strangers.map((socket) => once(socket, 'connect')))
  // As long as it takes to look at the memory once.
  for (let asked = 0; asked < 15; asked++) {
    expect(await statusOf(`${url}/v1/health`)).toBe(200)
    await sleep(100)
  }
  expect(strangers.filter(({ closed }) => !closed)).toHaveLength(connectionsWithin(200, 20_000) - 1)
  expect(child.exitCode).toBeNull()
})

test('it stops though somebody is silent', async () => {
  const { child, url, probes } = await withFewFiles()
  const silent = [url, probes].map((server) => connect(Number(new URL(server).port), '127.0.0.1'))
  await Promise.all(silent.map((socket) => once(socket, 'connect')))
  const stoppedAt = performance.now()
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([0, null])
  expect(performance.now() - stoppedAt).toBeLessThan(5_000)
})

test('told to stop before it is ready, it ends in order: it listens already', async () => {
  // It lets the gateway in, and says nothing any more.
  const bus = createServer((socket) => {
    socket.on('error', () => {}).write('INFO {"version":"2.12.0","max_payload":8388608,"headers":true}\r\n')
    socket.once('data', () => socket.write('PONG\r\n'))
  })
  const port = await listen(bus)
  const child = run({ ...settings, NATS_URL: `nats://127.0.0.1:${port}`, REDIS_URL: inject('redisUrl') })
  const said: unknown[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    said.push((JSON.parse(line) as { msg: string }).msg)
    if (said.at(-1) === 'listening') child.kill('SIGTERM')
    if (said.at(-1) === 'stopping') break
  }
  expect(said).toEqual(['listening', 'stopping'])
  child.kill('SIGKILL')
  bus.close()
})

test('without the bus it is not ready, yet to be sent requests: it answers them with a 503 that says when to come again', async () => {
  const bus = await startTestNats()
  const { child, url, probes } = await startGateway({ NATS_URL: bus.url })
  expect(await statusOf(`${probes}/readyz?exclude=nats`)).toBe(200)
  await bus.stop()
  await expect.poll(() => statusOf(`${probes}/readyz`)).toBe(503)
  expect(await statusOf(`${probes}/readyz?exclude=nats`)).toBe(200)
  const { statusCode, headers, body } = await request(`${url}/v1/me`, {
    headers: { authorization: `Bearer ${platform.issueKey().text}` },
  })
  expect(statusCode).toBe(503)
  expect(headers['retry-after']).toMatch(/^\d+$/)
  expect(await body.json()).toMatchObject({ error: { code: 'service_unavailable' } })
  child.kill('SIGKILL')
})

test('a gateway that was frozen while a key was revoked does not accept it when it wakes', async () => {
  const { child, url } = await plain()
  const key = platform.issueKey()
  // While its event loop is late, as on a busy machine just after its start, it turns everybody away.
  await expect.poll(() => statusOf(`${url}/v1/me`, key.text), { timeout: 5_000 }).toBe(200)
  onTestFinished(() => void child.kill('SIGCONT'))
  child.kill('SIGSTOP')
  key.state = 'revoked'
  // A revocation answers 2 s after its commit.
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  const agent = new Agent({ connections: 100 })
  const late = Array.from({ length: 100 }, () => statusOf(`${url}/v1/me`, key.text, agent))
  child.kill('SIGCONT')
  expect(await Promise.all(late)).not.toContain(200)
  // For a second it may turn everybody away, since its event loop was late.
  await expect.poll(() => statusOf(`${url}/v1/me`, key.text), { timeout: 5_000 }).toBe(401)
  await agent.destroy()
})

test('SIGTERM under load: a farewell to who still comes, answers until the last, and connections that end by themselves', async () => {
  const { child, url } = await plain()
  const { text: key } = platform.issueKey()
  const agent = new KeepAlive({ keepAlive: true, maxSockets: 50 })
  const headers = { authorization: `Bearer ${key}` }
  const exited = once(child, 'exit')
  const underLoad = Promise.withResolvers<void>()
  let refused = 0
  let reset = 0
  /** New connections whose answer said that it was their last. */
  let farewells = 0
  const statuses = new Map<number | undefined, number>()
  async function ask() {
    const asked = get(`${url}/v1/me`, { agent, headers })
    try {
      const [answer] = (await once(asked, 'response')) as [IncomingMessage]
      const count = (statuses.get(answer.statusCode) ?? 0) + 1
      statuses.set(answer.statusCode, count)
      if (count === 20) underLoad.resolve()
      if (!asked.reusedSocket && answer.headers.connection === 'close') farewells++
      answer.resume()
    } catch (err) {
      // Nothing listens any more: another gateway would have had this one.
      if (codeOf(err) === 'ECONNREFUSED') refused++
      else if (codeOf(err) !== 'ECONNRESET') throw err
      // A new connection stood in the kernel's queue when that was closed: it was never read.
      else if (asked.reusedSocket) reset++
    }
  }
  const asking: Array<Promise<void>> = []
  const timer = setInterval(() => asking.push(ask()), 2)
  await underLoad.promise
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
  clearInterval(timer)
  await Promise.all(asking)
  expect([...statuses.keys()]).toEqual([200])
  expect(statuses.get(200)).toBeGreaterThan(20)
  expect(farewells).toBeGreaterThan(5)
  expect(refused).toBeLessThan(asking.length)
  expect(reset).toBeLessThan(5)
  agent.destroy()
})

test('a wrong environment ends it with a list of what is wrong', async () => {
  const child = run({ ...settings, NATS_URL: nats.url, TRUST_PROXY: 'yes' })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  expect(await once(child, 'close')).toEqual([78, null])
  expect(said).toBe('Wrong settings in the environment:\n✖ REDIS_URL is required\n✖ TRUST_PROXY must be a number\n')
})

test('where nobody can listen is a wrong environment, too: the address of another machine, or a port that is taken', async () => {
  const { port } = new URL(peer.probes.url)
  const ends = [{ PROBE_HOST: '192.0.2.1' }, { PORT: port }].map(async (env) => {
    const child = run({ ...settings, NATS_URL: nats.url, REDIS_URL: inject('redisUrl'), ...env })
    const said = text(child.stderr)
    const [code] = await once(child, 'close')
    return `${code}: ${await said}`
  })
  expect(await Promise.all(ends)).toEqual([
    expect.stringMatching(
      /^78: Wrong settings in the environment:\n✖ cannot listen at the address of PROBE_HOST and PROBE_PORT: .+\n$/,
    ),
    `78: Wrong settings in the environment:\n✖ cannot listen at the address of HOST and PORT: listen EADDRINUSE: address already in use 127.0.0.1:${port}\n`,
  ])
})
